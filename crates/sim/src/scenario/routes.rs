//! Ways through the network: named step by step, or the shortest.

use std::time::Duration;

use super::error::{ScenarioError, list};
use super::model::{Cable, Crossing, direction};
use super::read::Named;

type Result<T> = std::result::Result<T, ScenarioError>;

/// Nodes and the links between them.
#[derive(Copy, Clone, Debug)]
pub(super) struct Map<'m> {
    pub(super) nodes: &'m [String],
    pub(super) cables: &'m [Cable],
    /// Nodes that do not forward, because flows or traffic begin or end there.
    pub(super) ends: &'m [bool],
}

impl Map<'_> {
    /// The node of that name.
    pub(super) fn node(&self, named: &Named<'_>) -> Result<usize> {
        let text = named.text()?;
        self.find_node(&text).ok_or_else(|| self.no_node(named, &text))
    }

    fn find_node(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node == name)
    }

    fn no_node(&self, named: &Named<'_>, text: &str) -> ScenarioError {
        let nodes = || self.nodes.iter().map(String::as_str);
        let remedy = match super::error::nearest(text, nodes()) {
            Some(near) => format!("did you mean `{near}`? Nodes are named by [[node]]"),
            None => format!("nodes are named by [[node]]: {}", super::error::list(nodes())),
        };
        named.error(format!("there is no node `{text}`"), remedy)
    }

    /// Crosses a link from one of its ends.
    fn cross(&self, cable: usize, from: usize) -> Option<(Crossing, usize)> {
        let (near, far) = self.cables[cable].ends;
        match from {
            _ if from == near => Some((Crossing { cable, is_reversed: false }, far)),
            _ if from == far => Some((Crossing { cable, is_reversed: true }, near)),
            _ => None,
        }
    }

    /// The links at a node.
    pub(super) fn links_at(&self, node: usize) -> impl Iterator<Item = usize> {
        (0..self.cables.len()).filter(move |&cable| self.cross(cable, node).is_some())
    }

    /// The way that names every node or link between the ends.
    pub(super) fn via(&self, via: &Named<'_>, from: usize, to: usize) -> Result<Vec<Crossing>> {
        let (mut at, mut way, mut seen) = (from, Vec::new(), vec![from]);
        for step in via.elements()? {
            self.take_step(&step, &mut at, &mut way, &mut seen)?;
        }
        if at != to {
            let (here, there) = (&self.nodes[at], &self.nodes[to]);
            let (crossing, _) = self.one_link(via, at, to)?.ok_or_else(|| {
                let what = format!("no link leads from {here} to {there}");
                via.error(what, "name the nodes or links between them, in order")
            })?;
            if seen.contains(&to) {
                return Err(self.loop_at(via, to));
            }
            way.push(crossing);
        }
        if way.is_empty() {
            Err(via.error("the way has no links", "name two different ends"))
        } else {
            Ok(way)
        }
    }

    fn take_step(
        &self,
        step: &Named<'_>,
        at: &mut usize,
        way: &mut Vec<Crossing>,
        seen: &mut Vec<usize>,
    ) -> Result<()> {
        let text = step.text()?;
        let here = &self.nodes[*at];
        let link = self.cables.iter().position(|cable| cable.name == text);
        let found = match (self.find_node(&text), link) {
            (Some(node), _) => self.one_link(step, *at, node)?,
            (None, Some(cable)) => self.cross(cable, *at),
            (None, None) => return Err(self.no_node(step, &text)),
        };
        let Some((crossing, next)) = found else {
            let near = self.links_at(*at).filter_map(|cable| self.cross(cable, *at));
            let names: Vec<&str> = near.map(|(_, node)| self.nodes[node].as_str()).collect();
            let what = format!("no link leads from {here} to {text}");
            return Err(step.error(what, format!("from {here} links lead to {}", list(names))));
        };
        if seen.contains(&next) {
            return Err(self.loop_at(step, next));
        }
        way.push(crossing);
        seen.push(next);
        *at = next;
        Ok(())
    }

    fn loop_at(&self, named: &Named<'_>, node: usize) -> ScenarioError {
        let what = format!("the way comes to {} twice", self.nodes[node]);
        named.error(what, "a way has no loops: name each node once, without the ends")
    }

    /// The link between two nodes; an error if there are several.
    fn one_link(
        &self,
        named: &Named<'_>,
        from: usize,
        to: usize,
    ) -> Result<Option<(Crossing, usize)>> {
        let crossed = self.links_at(from).filter_map(|cable| self.cross(cable, from));
        let between: Vec<_> = crossed.filter(|(_, node)| *node == to).collect();
        match between[..] {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            _ => {
                let names = between.iter().map(|(c, _)| self.cables[c.cable].name.as_str());
                let (from, to) = (&self.nodes[from], &self.nodes[to]);
                let what = format!("several links lead from {from} to {to}");
                Err(named.error(what, format!("name the link: {}", list(names))))
            }
        }
    }

    /// The way of least delay, then of fewest links, that begins with the link `first` if one is
    /// given.
    pub(super) fn shortest(
        &self,
        from: usize,
        to: usize,
        first: Option<usize>,
    ) -> Option<Vec<Crossing>> {
        let mut best: Vec<Option<(Duration, usize, Vec<Crossing>)>> = vec![None; self.nodes.len()];
        let mut is_done = vec![false; self.nodes.len()];
        best[from] = Some((Duration::ZERO, 0, Vec::new()));
        loop {
            let open = (0..best.len()).filter(|&node| !is_done[node]);
            let reached = open.filter_map(|node| {
                best[node].as_ref().map(|(delay, links, _)| (*delay, *links, node))
            });
            let (delay, links, node) = reached.min()?;
            let way = best[node].as_ref().map(|(_, _, way)| way.clone())?;
            if node == to {
                return Some(way);
            }
            is_done[node] = true;
            if node != from && self.ends[node] {
                continue;
            }
            for cable in self.links_at(node) {
                if node == from && first.is_some_and(|first| first != cable) {
                    continue;
                }
                let Some((crossing, next)) = self.cross(cable, node) else { continue };
                let key = (delay + direction(self.cables, crossing).delay, links + 1);
                let is_better = best[next].as_ref().is_none_or(|(d, l, _)| key < (*d, *l));
                if !is_done[next] && is_better {
                    let way = way.iter().copied().chain([crossing]).collect();
                    best[next] = Some((key.0, key.1, way));
                }
            }
        }
    }
}

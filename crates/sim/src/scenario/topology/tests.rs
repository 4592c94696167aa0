//! Networks from files, as they are written and as nobody writes them.

use proptest::prelude::*;

use super::*;

const GRAPHML: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="label" attr.type="string" for="node" id="d0" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d1" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d2" />
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d3" />
  <key attr.name="LinkSpeed" attr.type="string" for="edge" id="d4" />
  <key attr.name="LinkSpeedUnits" attr.type="string" for="edge" id="d5" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d0">North</data><data key="d1">60</data><data key="d2">10</data></node>
    <node id="1"><data key="d0">South</data><data key="d1">50</data><data key="d2">10</data></node>
    <node id="2"><data key="d0">None</data></node>
    <node id="3"><data key="d0">None</data></node>
    <edge source="0" target="1"><data key="d3">10000000000.0</data></edge>
    <edge source="1" target="2"><data key="d4">155</data><data key="d5">M</data></edge>
    <edge source="2" target="3" />
    <edge source="3" target="3" />
  </graph>
</graphml>
"#;

#[test]
fn graphml_has_names_speeds_and_delays_by_distance() {
    assert_eq!(Format::of(GRAPHML), Some(Format::GraphMl));
    let net = parse(GRAPHML, Format::GraphMl).unwrap();
    assert_eq!(net.nodes, ["North", "South", "None 2", "None 3"]);
    let rates: Vec<_> = net.links.iter().map(|link| link.rate).collect();
    let gigabits = |bits| Some(Rate::bps(bits));
    assert_eq!(rates, [gigabits(10_000_000_000), gigabits(155_000_000), None]);
    // Ten degrees of a meridian are 1112 km, 5.56 ms of glass.
    let delay = net.links[0].delay.unwrap().as_secs_f64();
    assert!((0.00555..0.00557).contains(&delay), "{delay}");
    assert_eq!(net.links[1].delay, None, "nobody knows where it ends");
    assert_eq!(net.links.len(), 3, "a link to itself leads nowhere");
    assert_eq!((net.links[0].ends, net.links[0].line), ((0, 1), 14));
}

const BRITE: &str = "Topology: ( 3 Nodes, 2 Edges )\nModel (1 - RTWaxman):  3 1000 100\n\n\
Nodes: ( 3 )\n0\t807\t402\t2\t2\t-1\tRT_NODE\n1\t1\t2\t2\t2\t-1\tRT_NODE\n2 5 5 1 1 -1 RT_NODE\n\n\
Edges: ( 2 )\n0\t0\t1\t416.4\t1.389\t10.0\t-1\t-1\tE_RT\tU\n1\t1\t2\t10\t-1\t-1\t-1\t-1\tE_RT\tU\n";

#[test]
fn brite_has_delays_in_milliseconds_and_bandwidths_in_megabits() {
    assert_eq!(Format::of(BRITE), Some(Format::Brite));
    let net = parse(BRITE, Format::Brite).unwrap();
    assert_eq!(net.nodes, ["0", "1", "2"]);
    let first = &net.links[0];
    assert_eq!(first.rate, Some(Rate::bps(10_000_000)));
    assert_eq!(first.delay, Some(Duration::from_nanos(1_389_000)));
    assert_eq!((net.links[1].rate, net.links[1].delay), (None, None), "-1 is not known");
}

#[test]
fn relations_of_systems_are_links_without_rates() {
    let text = "# inferred\n174|3356|0\n3356|64512|-1|bgp\n";
    assert_eq!(Format::of(text), Some(Format::AsRel));
    let net = parse(text, Format::AsRel).unwrap();
    assert_eq!(net.nodes, ["AS174", "AS3356", "AS64512"]);
    let ends: Vec<_> = net.links.iter().map(|link| (link.ends, link.rate, link.line)).collect();
    assert_eq!(ends, [((0, 1), None, 2), ((1, 2), None, 3)]);
}

#[test]
fn flaws_name_line_and_remedy() {
    let says = |text: &str, format| {
        let Flaw { line, what, remedy } = parse(text, format).unwrap_err();
        format!("{line}: {what}; {remedy}")
    };
    let graph = |from: &str, to: &str| GRAPHML.replace(from, to);
    assert_eq!(
        says(&graph("target=\"2\"", "target=\"7\""), Format::GraphMl),
        "15: there is no node `7`; a link joins two nodes that the file has"
    );
    assert_eq!(
        says(&graph("10000000000.0", "fast"), Format::GraphMl),
        "14: LinkSpeedRaw: `fast` is no number; correct it"
    );
    assert!(says("<graphml", Format::GraphMl).starts_with("1: this is no XML"));
    assert!(says(&graph(">60<", ">91<"), Format::GraphMl).contains("no place on earth"));
    let bomb = "<!DOCTYPE a [<!ENTITY b \"c\">]>\n<graphml/>";
    assert!(says(bomb, Format::GraphMl).contains("XML"), "entities of its own are refused");
    assert_eq!(
        says("1|2|5\n", Format::AsRel),
        "1: there is no relation `5`; -1 is provider and customer, 0 is peers"
    );
    let short = BRITE.replace("\t416.4\t1.389\t10.0\t-1\t-1\tE_RT\tU", "");
    assert!(says(&short, Format::Brite).starts_with("10: this edge has less than six fields"));
    assert_eq!(Format::of("hello\n"), None);
}

#[test]
fn large_files_are_refused_before_they_are_in_memory() {
    let line = |n: u32| format!("{n}|{}|0\n", n + 1);
    let text: String = (1..3000).map(line).collect();
    let flaw = parse(&text, Format::AsRel).unwrap_err();
    assert!(flaw.what.starts_with("more than 2000"), "{}", flaw.what);
}

proptest! {
    /// Whatever is cut, doubled or replaced: a network whose links have their ends, or a flaw.
    #[test]
    fn no_file_makes_it_panic(
        which in 0usize..3,
        from in 0usize..3000,
        length in 0usize..200,
        other in prop_oneof![Just(String::new()), "[ -~\\n\\t]{0,40}", Just("\u{fffd}|9e999|-0".to_owned())],
    ) {
        let (text, format) = [
            (GRAPHML, Format::GraphMl), (BRITE, Format::Brite), ("1|2|0\n2|3|-1\n", Format::AsRel),
        ][which];
        let from = from % text.len();
        let until = (from + length).min(text.len());
        let text = format!("{}{other}{}", &text[..from], &text[until..]);
        if let Ok(net) = parse(&text, format) {
            for link in &net.links {
                prop_assert!(link.ends.0 < net.nodes.len() && link.ends.1 < net.nodes.len());
            }
        }
    }
}

//! A line on the interfaces that are used, and those that are not.

use manypath::{Association, LeftOut, Uplinks};

use crate::connect::bind::Bind;
use crate::screen::Screen;

/// Names of one kind that are printed before the rest is counted.
const NAMES_MAX: usize = 3;

/// Says which uplinks an association has, if there is a choice to be told of.
pub(crate) fn say(association: &Association, screen: &Screen) {
    if let Some(line) = association.uplinks().and_then(|uplinks| line(&uplinks)) {
        screen.line(&line);
    }
}

/// Says which addresses of this host peers are not told, if it listens on all.
pub(crate) fn say_left_out(listen: &[Bind], screen: &Screen) {
    if !listen.is_empty() {
        return;
    }
    let Ok(found) = manypath::reachable() else { return };
    if !found.left_out.is_empty() {
        let left = reasons(&found.left_out);
        screen.line(&format!("Peers are not told: {left}. --listen names what they are told."));
    }
}

fn line(uplinks: &Uplinks) -> Option<String> {
    let names = uplinks.interfaces();
    if names.is_empty() || (names.len() == 1 && uplinks.left_out.is_empty()) {
        return None;
    }
    if let Some(tunnel) = uplinks.tunnel() {
        let left: Vec<&str> = uplinks.left_out.iter().map(|l| l.interface.as_str()).collect();
        let left = counted(&left);
        return Some(format!(
            "Uplink: {tunnel} alone, the tunnel of the system's route. Left out: {left}."
        ));
    }
    let spared = uplinks.spared();
    let name = |name: &&str| {
        let rank = if spared.contains(name) { " (metered: a backup)" } else { "" };
        format!("{name}{rank}")
    };
    let used = names.iter().map(name).collect::<Vec<_>>().join(", ");
    let mut line = format!("Uplinks: {used}.");
    if !uplinks.left_out.is_empty() {
        line += &format!(" Left out: {}.", reasons(&uplinks.left_out));
    }
    Some(line)
}

/// The interfaces with their reasons.
fn reasons(left_out: &[LeftOut]) -> String {
    let each: Vec<_> = left_out.iter().map(|l| format!("{} ({})", l.interface, l.why)).collect();
    counted(&each)
}

/// The first few, and the number of the others.
fn counted<T: AsRef<str>>(list: &[T]) -> String {
    let mut first: Vec<String> =
        list.iter().take(NAMES_MAX).map(|name| name.as_ref().to_owned()).collect();
    if list.len() > NAMES_MAX {
        first.push(format!("{} more", list.len() - NAMES_MAX));
    }
    first.join(", ")
}

#[cfg(test)]
mod tests {
    use manypath::NotUsed;

    use super::*;

    fn uplinks(used: &[&str], left_out: &[(&str, NotUsed)]) -> Uplinks {
        let mut uplinks = Uplinks::default();
        for name in used {
            uplinks.add(name, "10.0.0.1".parse().unwrap(), "192.0.2.1:9899".parse().unwrap());
        }
        for (name, why) in left_out {
            uplinks.leave_out(name, "10.0.0.1".parse().unwrap(), why.clone());
        }
        uplinks
    }

    #[test]
    fn a_lone_uplink_needs_no_word() {
        assert_eq!(line(&uplinks(&["wlan0"], &[])), None);
        assert_eq!(line(&uplinks(&[], &[])), None, "as to loopback");
    }

    #[test]
    fn what_is_used_and_what_is_not_fits_a_line() {
        let mut both = uplinks(&["wlan0", "lte0"], &[("eth9", NotUsed::NoRoute)]);
        let said = line(&both).unwrap();
        assert_eq!(said, "Uplinks: wlan0, lte0. Left out: eth9 (no route there).");
        both.set_metered(&["lte0".to_owned()].into());
        let said = line(&both).unwrap();
        assert!(said.starts_with("Uplinks: wlan0, lte0 (metered: a backup)."), "{said}");
        let beside = || NotUsed::BesideTunnel("tun0".to_owned());
        let said = line(&uplinks(&["tun0"], &[("wlan0", beside()), ("lte0", beside())])).unwrap();
        assert!(said.contains("tun0 alone") && said.ends_with("Left out: wlan0, lte0."), "{said}");
        assert!(said.len() <= 80, "{said}");
    }

    #[test]
    fn many_interfaces_are_counted() {
        let left: Vec<_> = ["a", "b", "c", "d", "e"].map(|n| (n, NotUsed::NoRoute)).to_vec();
        let said = line(&uplinks(&["wlan0"], &left)).unwrap();
        assert!(said.ends_with("c (no route there), 2 more."), "{said}");
    }
}

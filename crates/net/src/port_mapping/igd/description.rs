//! The description of a device: the services that map ports.

use roxmltree::{Document, Node, ParsingOptions};

use super::url::Url;

/// Kinds of service that map ports, those with more abilities first.
const KINDS: [&str; 3] = [
    "urn:schemas-upnp-org:service:WANIPConnection:2",
    "urn:schemas-upnp-org:service:WANIPConnection:1",
    "urn:schemas-upnp-org:service:WANPPPConnection:1",
];
/// Services that are asked at most; a router has one for each uplink of its own.
const SERVICES_MAX: usize = 4;
/// Nodes of a page at most.
const NODES_MAX: u32 = 20_000;

/// A service and where it takes actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) kind: &'static str,
    pub(super) control: Url,
}

/// The services of a description that was read at `at`. Those whose control URL leads to another
/// host are left out. `None` if it is no description.
pub(super) fn services(page: &str, at: &Url) -> Option<Vec<Service>> {
    let document = parse(page)?;
    let root = document.root_element();
    // An old element, which says what references begin with.
    let named = child(root, "URLBase").and_then(|base| at.join(base));
    let base = named.unwrap_or_else(|| at.clone());
    let mut services: Vec<Service> = Vec::new();
    for kind in KINDS {
        let all = root.descendants().filter(|node| node.tag_name().name() == "service");
        let of_kind = all.filter(|node| child(*node, "serviceType") == Some(kind));
        let controls = of_kind.filter_map(|node| base.join(child(node, "controlURL")?));
        services.extend(controls.map(|control| Service { kind, control }));
    }
    services.truncate(SERVICES_MAX);
    Some(services)
}

/// Reads XML without entities of its own.
pub(super) fn parse(page: &str) -> Option<Document<'_>> {
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).ok()
}

/// The text of a child element, without spaces around it; `None` if there is no such child, or it
/// is empty.
fn child<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let found = node.children().find(|child| child.tag_name().name() == name)?;
    found.text().map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Url {
        Url::parse("http://192.168.1.1:5000/root.xml", [192, 168, 1, 1].into()).unwrap()
    }

    fn page(base: &str, services: &[(&str, &str)]) -> String {
        let service = |(kind, url): &(&str, &str)| {
            format!(
                "<service><serviceType>urn:schemas-upnp-org:service:{kind}</serviceType>\
                 <controlURL> {url} </controlURL></service>"
            )
        };
        let list: String = services.iter().map(service).collect();
        format!(
            "<?xml version=\"1.0\"?>\n<root xmlns=\"urn:schemas-upnp-org:device-1-0\">{base}<device>\
             <deviceList><device><serviceList>{list}</serviceList></device></deviceList></device>\
             </root>"
        )
    }

    fn controls(page: &str) -> Option<Vec<String>> {
        let found = services(page, &at())?;
        Some(found.iter().map(|service| service.control.to_string()).collect())
    }

    #[test]
    fn services_that_map_ports_are_found_wherever_they_are() {
        let page = page(
            "",
            &[
                ("WANCommonInterfaceConfig:1", "/a"),
                ("WANPPPConnection:1", "/b"),
                ("WANIPConnection:1", "c"),
            ],
        );
        let expected = ["http://192.168.1.1:5000/c", "http://192.168.1.1:5000/b"];
        assert_eq!(controls(&page).unwrap(), expected);
    }

    #[test]
    fn references_begin_with_the_base_if_that_is_on_the_router() {
        let service = [("WANIPConnection:1", "c")];
        for (base, expected) in [
            ("http://192.168.1.1:49000/igd/", "http://192.168.1.1:49000/igd/c"),
            ("http://10.0.0.1/igd/", "http://192.168.1.1:5000/c"),
            ("", "http://192.168.1.1:5000/c"),
        ] {
            let page = page(&format!("<URLBase>{base}</URLBase>"), &service);
            assert_eq!(controls(&page).unwrap(), [expected], "{base}");
        }
    }

    #[test]
    fn control_urls_of_other_hosts_are_left_out_and_the_number_is_bounded() {
        let page_of = |urls: &[&str]| {
            page("", &urls.iter().map(|url| ("WANIPConnection:1", *url)).collect::<Vec<_>>())
        };
        let evil = page_of(&["http://10.0.0.1:80/admin", "//10.0.0.1/x", "ftp://192.168.1.1/x"]);
        assert!(controls(&evil).unwrap().is_empty());
        assert_eq!(controls(&page_of(&["/c"; 40])).unwrap().len(), SERVICES_MAX);
    }

    #[test]
    fn what_is_no_description_breaks_nothing() {
        let deep = "<a>".repeat(40_000);
        let closed = format!("{}{}", "<a>".repeat(15_000), "</a>".repeat(15_000));
        let many = format!("<root>{}</root>", "<a/>".repeat(30_000));
        let entities = "<!DOCTYPE r [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><r>&b;</r>";
        for page in ["", "<", "<root>", "\u{0}", &deep, &many, entities] {
            assert_eq!(controls(page), None, "{page:.40}");
        }
        assert_eq!(controls(&closed), Some(Vec::new()), "deep, but a page");
    }
}

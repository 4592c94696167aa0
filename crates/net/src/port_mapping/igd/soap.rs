//! Actions of UPnP services, by SOAP over HTTP (UPnP Device Architecture 1.1, section 3).

use hyper::StatusCode;

use super::super::place::Place;
use super::description::{self, Service};
use super::http;

/// Errors that routers give (WANIPConnection:1 §2.4.16).
pub(super) const INVALID: u16 = 402;
pub(super) const NO_SUCH_ENTRY: u16 = 714;
pub(super) const CONFLICT: u16 = 718;
pub(super) const NO_LIFETIMES: u16 = 725;

/// The reason why an action was not taken.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// No answer came in time.
    Silent,
    /// The answer is none.
    Nonsense,
    /// The router refuses, for the reason of this number.
    Upnp(u16),
}

/// Calls an action; the answer.
pub(super) async fn act(
    place: &Place,
    service: &Service,
    action: &str,
    arguments: &[(&str, &str)],
) -> Result<String, Fault> {
    let header = format!("\"{}#{action}\"", service.kind);
    let message = message(service.kind, action, arguments);
    let answer = http::post(place, &service.control, &header, message).await;
    let page = answer.map_err(|http::NoAnswer| Fault::Silent)?;
    match page.status {
        StatusCode::OK => Ok(page.text),
        StatusCode::INTERNAL_SERVER_ERROR => Err(fault(&page.text)),
        _ => Err(Fault::Nonsense),
    }
}

/// A call. No argument of ours needs to be escaped: numbers, addresses and words.
fn message(kind: &str, action: &str, arguments: &[(&str, &str)]) -> String {
    let arguments: String =
        arguments.iter().map(|(name, value)| format!("<{name}>{value}</{name}>")).collect();
    format!(
        "<?xml version=\"1.0\"?>\r\n\
         <s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" \
         s:encodingStyle=\"http://schemas.xmlsoap.org/soap/encoding/\">\
         <s:Body><u:{action} xmlns:u=\"{kind}\">{arguments}</u:{action}></s:Body></s:Envelope>\r\n"
    )
}

/// The text of an element of an answer.
pub(super) fn value(answer: &str, name: &str) -> Option<String> {
    let document = description::parse(answer)?;
    let mut all = document.root_element().descendants();
    let found = all.find(|node| node.tag_name().name() == name)?;
    found.text().map(str::to_owned)
}

fn fault(answer: &str) -> Fault {
    let code = value(answer, "errorCode").and_then(|text| text.trim().parse().ok());
    code.map_or(Fault::Nonsense, Fault::Upnp)
}

/// The words for a number.
pub(super) fn words(code: u16) -> &'static str {
    match code {
        401 | 602 => "it does not know the action",
        INVALID | 600 | 601 => "it does not understand the request",
        501 => "it failed",
        606 => "not authorized",
        CONFLICT => "another host has the port",
        724 => "the port must be the same on both sides",
        NO_LIFETIMES => "it knows no lifetimes",
        728 => "it has no room for another mapping",
        729 => "another mapping is in the way",
        _ => "refused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_faults_are_read_whatever_prefixes_they_have() {
        let answer = "<s:Envelope xmlns:s=\"e\"><s:Body><u:R xmlns:u=\"k\">\
                      <NewExternalIPAddress>203.0.113.5</NewExternalIPAddress></u:R></s:Body>\
                      </s:Envelope>";
        assert_eq!(value(answer, "NewExternalIPAddress").as_deref(), Some("203.0.113.5"));
        assert_eq!(value(answer, "NewPort"), None);
        let refused = "<s:Fault xmlns:s=\"e\"><detail><UPnPError><errorCode> 718 </errorCode>\
                       </UPnPError></detail></s:Fault>";
        assert_eq!(fault(refused), Fault::Upnp(CONFLICT));
        for text in ["", "<a/>", "<errorCode>-1</errorCode>", "<errorCode>70000</errorCode>"] {
            assert_eq!(fault(text), Fault::Nonsense, "{text}");
        }
    }

    #[test]
    fn a_call_is_a_page_with_its_arguments() {
        let text = message("urn:k:1", "Add", &[("NewPort", "7"), ("NewHost", "")]);
        let document = description::parse(&text).unwrap();
        let call = document.descendants().find(|n| n.tag_name().name() == "Add").unwrap();
        assert_eq!(call.tag_name().namespace(), Some("urn:k:1"));
        assert_eq!(value(&text, "NewPort").as_deref(), Some("7"));
    }
}

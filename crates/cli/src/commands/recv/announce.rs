//! The words with which a receiver says how to send to it.

use std::net::{IpAddr, SocketAddr};

use manypath_files::ticket::Ticket;
use manypath_trust::{Code, Token};
use serde_json::json;

use crate::args::RecvArgs;
use crate::connect::reach::Reach;
use crate::connect::relayed::{RelayedPlaces, ShownCode, listening_on};
use crate::connect::security::{NOT_ENCRYPTED, Serving};
use crate::failure::Result;
use crate::screen::Screen;
use crate::screen::output::Out;
use crate::screen::qr;

/// The facts that senders need to know of a receiver.
pub(super) struct Announcement<'a> {
    pub(super) args: &'a RecvArgs,
    pub(super) screen: &'a Screen,
    /// Where the ticket goes.
    pub(super) out: Out,
    pub(super) serving: &'a Serving,
    /// Where it listens.
    pub(super) addresses: Vec<IpAddr>,
    pub(super) port: u16,
    /// Where relays let peers in.
    pub(super) relayed: RelayedPlaces,
    pub(super) token: Token,
    pub(super) code: Option<&'a Code>,
    /// The code that senders everywhere can use.
    pub(super) shown: Option<ShownCode>,
}

impl Announcement<'_> {
    /// Says how to send to this receiver; the same in a sentence for a view, which hides it.
    pub(super) fn say(self) -> Result<String> {
        if !self.serving.is_protected() {
            self.screen.line(NOT_ENCRYPTED);
        }
        let ticket = self.ticket();
        if self.args.report.json {
            return self.print_event(ticket.as_ref());
        }
        self.print_lines(ticket.as_ref())
    }

    /// The ticket; none with certificates.
    fn ticket(&self) -> Option<Ticket> {
        let trust = self.serving.trust?;
        let (addresses, token) = (self.addresses.clone(), self.token.clone());
        Some(Ticket {
            addresses,
            port: self.port,
            relayed: self.relayed.for_ticket(),
            token,
            trust,
        })
    }

    fn print_event(&self, ticket: Option<&Ticket>) -> Result<String> {
        let shown: Vec<String> = self.addresses.iter().map(IpAddr::to_string).collect();
        let event = json!({
            "event": "listening",
            "ticket": ticket.map(Ticket::to_string),
            "addresses": shown,
            "port": self.port,
            "relayed": self.relayed.json(),
            "reach": Reach::of(&self.addresses).name(),
            "encrypted": self.serving.is_protected(),
            "key": self.serving.key().map(|key| key.to_string()),
            "name": self.args.name.name.as_ref().map(|name| name.as_str()),
            "code": self.code_text(),
            "destination": self.shown.as_ref().map(ShownCode::at_relay),
        });
        self.out.print(&format!("{event}\n"))?;
        self.show_qr(ticket)?;
        Ok(String::new())
    }

    /// The code, with its number if it has one.
    fn code_text(&self) -> Option<String> {
        let shown = self.shown.as_ref().map(|shown| shown.code.to_string());
        shown.or_else(|| self.code.map(Code::to_string))
    }

    fn print_lines(&self, ticket: Option<&Ticket>) -> Result<String> {
        let ends: Vec<String> =
            self.addresses.iter().map(|&ip| SocketAddr::new(ip, self.port).to_string()).collect();
        let what = if self.args.stdout {
            "writing the file to standard output".to_owned()
        } else {
            format!("storing files in {}", self.args.dir.display())
        };
        let place = listening_on(&ends);
        self.screen.line(&format!("{place}, {what}"));
        self.relayed.lines().for_each(|line| self.screen.line(&line));
        self.say_reach();
        let name = self.args.name.name.as_ref().map(|name| name.as_str());
        let Some(ticket) = ticket else {
            let to = name.unwrap_or("HOST");
            let how = format!(
                "On the other machine, run: manypath send --cert FILE --key FILE --ca FILE FILE... {to}"
            );
            self.screen.line(&how);
            return Ok(how);
        };
        let shows_key = self.args.security.identity.is_some() || name.is_some();
        if shows_key && let Some(key) = self.serving.key() {
            self.screen.line(&format!("Key of this receiver: {key}"));
        }
        let waiting = name.map(|name| self.say_name(name)).transpose()?;
        let other = if waiting.is_some() { "Elsewhere" } else { "On the other machine" };
        if let Some(shown) = &self.shown {
            return self.say_code(shown, other, ticket);
        }
        self.screen.line(&format!("{other}, run: manypath send FILE... followed by this ticket:"));
        self.out.print(&format!("{ticket}\n"))?;
        self.show_qr(Some(ticket))?;
        let waiting = waiting.unwrap_or_else(|| {
            format!("On the other machine, run: manypath send FILE... {ticket}")
        });
        Ok(format!("Waiting for a sender. {waiting}"))
    }

    /// Says how to send to this receiver by its code; the same in a sentence.
    fn say_code(&self, shown: &ShownCode, other: &str, ticket: &Ticket) -> Result<String> {
        let how = format!("{other}, run: manypath send FILE... {}", shown.at_relay());
        self.screen.line(&how);
        self.screen.line("Senders that have this relay in their settings need the code alone:");
        self.out.print(&format!("{}\n", shown.code))?;
        self.screen.line("Or send with this ticket:");
        self.out.print(&format!("{ticket}\n"))?;
        self.show_qr(Some(ticket))?;
        Ok(format!("Waiting for a sender. {how}"))
    }

    /// Says who cannot reach this receiver, unless its user has chosen that.
    fn say_reach(&self) {
        let chosen = self.args.name.name.is_some()
            || !self.args.listen.listen.is_empty()
            || self.relayed.reach_all();
        let advice = Reach::of(&self.addresses).advice(self.port);
        if !chosen && let Some(advice) = advice {
            self.screen.line(&advice);
        }
    }

    /// Says how to send to this receiver by its name, and what to type; the same in a sentence.
    fn say_name(&self, name: &str) -> Result<String> {
        let how = format!("In this network, run: manypath send FILE... {name}");
        Ok(match self.code {
            Some(_) if self.shown.is_some() => {
                let how = format!("{how}, and type the code below");
                self.screen.line(&how);
                how
            }
            Some(code) => {
                self.screen.line(&format!("{how}, and type this code there:"));
                self.out.print(&format!("{code}\n"))?;
                format!("{how}, and type the code {code}")
            }
            None => {
                let how = format!("{how}, with the token of this receiver");
                self.screen.line(&how);
                how
            }
        })
    }

    fn show_qr(&self, ticket: Option<&Ticket>) -> Result<()> {
        match ticket {
            Some(ticket) if self.args.qr.qr => qr::show_ticket(&ticket.to_string(), self.screen),
            _ => Ok(()),
        }
    }
}

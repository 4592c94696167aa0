//! `manypath doctor`: what keeps this host from using all its paths, and how to mend it.

mod print;

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use manypath::BindTo;
use manypath_doctor::{CHECKS, Check, Options, Report, Severity, ThisSystem, check_named, examine};
use serde_json::json;

use crate::args::DoctorArgs;
use crate::connect::dest::Destination;
use crate::connect::found::Found;
use crate::connect::host::Host;
use crate::connect::link_local;
use crate::failure::{Failure, Result};
use crate::screen::Screen;
use crate::screen::output;
use crate::settings;

/// Exit codes of findings; no other command has them.
const EXIT_WARNING: u8 = 10;
const EXIT_ERROR: u8 = 11;

/// How long a NAT may be asked to remember.
const LONG: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(600);

/// `manypath doctor`; the exit code.
pub(crate) async fn run(args: DoctorArgs) -> Result<u8> {
    if args.list {
        return list(args.report.json).map(|()| 0);
    }
    let screen = Screen::new(&args.report);
    let options = options(&args, &screen).await?;
    if !args.report.json && !options.remotes.is_empty() {
        let to: Vec<String> = options.remotes.iter().map(ToString::to_string).collect();
        screen.line(&format!("Looking at this host and its paths to {} ...", to.join(", ")));
    }
    let report = tokio::task::spawn_blocking(move || examine(&ThisSystem, &options))
        .await
        .map_err(|e| Failure::failed(format!("the checks ended early: {e}")))?;
    if args.report.json {
        // Plain numbers, strings and lists: this cannot fail.
        let json = serde_json::to_string(&report).unwrap_or_default();
        output::print(&(json + "\n"))?;
    } else {
        output::print(&print::text(&report, args.report.verbose, args.report.quiet))?;
    }
    Ok(exit(&report))
}

fn exit(report: &Report) -> u8 {
    match report.worst {
        Severity::Ok | Severity::Note => 0,
        Severity::Warning => EXIT_WARNING,
        Severity::Error => EXIT_ERROR,
    }
}

async fn options(args: &DoctorArgs, screen: &Screen) -> Result<Options> {
    let checks: Vec<&'static dyn Check> =
        args.only.iter().map(|name| named(name)).collect::<Result<_>>()?;
    let remotes = match &args.dest {
        Some(dest) => Destination::parse(dest)?.without_code()?.resolve().await?.told(screen),
        None => Vec::new(),
    };
    if remotes.iter().any(|remote| manypath::is_link_local_v6(remote.ip())) {
        return Err(Failure::usage("the checks do not know link-local addresses (fe80::…)")
            .hint(format!("{}, or leave out DEST", link_local::OTHER_ADDRESS)));
    }
    let stun = stun_servers(&args.stun).await?.told(screen);
    let long = args.long.as_deref().map(|text| settings::duration("--long", text)).transpose()?;
    if long.is_some_and(|long| !LONG.contains(&long)) {
        return Err(Failure::usage("--long: not from 1 s to 10 min"));
    }
    let place = |to: &BindTo| match to {
        BindTo::Auto | BindTo::Any => None,
        place => Some(place.to_string()),
    };
    Ok(Options {
        remotes,
        uplinks: args.bind.bind.iter().filter_map(|bind| place(&bind.to)).collect(),
        stun,
        long,
        time_servers: args.time_server.clone(),
        checks,
        is_root: is_root(),
    })
}

fn named(name: &str) -> Result<&'static dyn Check> {
    check_named(name).ok_or_else(|| {
        let names: Vec<&str> = CHECKS.iter().map(|check| check.name()).collect();
        Failure::usage(format!("--only: there is no check {name:?}"))
            .hint(format!("the checks are: {}", names.join(", ")))
    })
}

/// The addresses of the servers of `--stun`.
async fn stun_servers(servers: &[String]) -> Result<Found<SocketAddr>> {
    let (mut addresses, mut missing) = (Vec::new(), Vec::new());
    for text in servers {
        // An argument for --via is a relay, too. Its password is not needed, and not repeated.
        let of_relay = text.strip_prefix("turn:").and_then(|rest| rest.rsplit_once('@'));
        let text = of_relay.map_or(text.as_str(), |relay| relay.1);
        match Host::read("--stun", text)?.look_up().await {
            Ok(all) => {
                // All addresses are one server: an address of each family will do.
                let of = |v6: bool| all.iter().copied().find(|a| a.is_ipv6() == v6);
                addresses.extend([of(false), of(true)].into_iter().flatten());
            }
            Err(e) => missing.push(format!("cannot find the STUN server {text}: {e}")),
        }
    }
    Found::new(addresses, missing)
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    true
}

fn list(as_json: bool) -> Result<()> {
    if as_json {
        let check = |check: &&dyn Check| json!({ "check": check.name(), "about": check.about(), "findings": check.ids() });
        let checks: Vec<_> = CHECKS.iter().map(check).collect();
        return output::print(&format!("{}\n", json!({ "checks": checks })));
    }
    let mut text = String::new();
    for check in CHECKS {
        text += &format!("{:12} {}\n", check.name(), check.about());
        text += &format!("{:12} finds: {}\n", "", check.ids().join(", "));
    }
    output::print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_check_is_named_with_those_that_there_are() {
        let failure = named("routs").err().unwrap();
        assert!(failure.message.contains("routs"), "{failure}");
        assert!(failure.hint.unwrap().contains("routes"));
        assert_eq!(named("routes").unwrap().name(), "routes");
    }

    #[tokio::test]
    async fn a_link_local_destination_is_refused_with_the_remedy() {
        let cli =
            <crate::args::Cli as clap::Parser>::try_parse_from(["manypath", "doctor", "fe80::7%1"]);
        let Ok(crate::args::Cli { command: crate::args::Command::Doctor(args), .. }) = cli else {
            panic!("the command line is read");
        };
        let failure = options(&args, &Screen::new(&args.report)).await.err().unwrap();
        assert!(failure.message.contains("link-local"), "{failure}");
        assert!(failure.hint.unwrap().contains("another address"));
    }

    #[tokio::test]
    async fn a_stun_server_has_a_port_or_not() {
        for (text, address) in [
            ("192.0.2.1", "192.0.2.1:3478"),
            ("192.0.2.1:7", "192.0.2.1:7"),
            ("2001:db8::1", "[2001:db8::1]:3478"),
            ("[2001:db8::1]:7", "[2001:db8::1]:7"),
            ("::ffff:192.0.2.1", "192.0.2.1:3478"),
            ("[::ffff:192.0.2.1]:7", "192.0.2.1:7"),
            ("turn:ann:secret@192.0.2.1", "192.0.2.1:3478"),
            ("turn:ann:secret@[2001:db8::1]:7", "[2001:db8::1]:7"),
        ] {
            let found = stun_servers(&[text.to_owned()]).await.unwrap();
            assert_eq!(found.all, [address.parse().unwrap()], "{text}");
        }
        for text in ["", ":1", "a:b", "fe80::1", "[fe80::1]:7", "fe80::1%1", "[fe80::1%lo]:7"] {
            assert!(stun_servers(&[text.to_owned()]).await.is_err(), "{text}");
        }
    }
}

use super::*;
use crate::config::Config;
use crate::tx::{Fragment, Outstanding};

fn config(recovery: &str, sfr: bool) -> Config {
    let mut config = Config::default();
    config.set("recovery", recovery).expect("it is one");
    config.with(|c| c.sfr = sfr)
}

fn member(recovery: &str, sfr: bool) -> Box<dyn LossRecovery> {
    config(recovery, sfr).recovery.build(&config(recovery, sfr))
}

/// TSNs 1 to 8, alternately on two paths.
fn outstanding() -> Outstanding {
    let mut out = Outstanding::new(Tsn(1));
    for id in [PathId(0), PathId(1)] {
        out.add_path(id);
    }
    for n in 0..8u8 {
        let fragment = Fragment::whole(b"data", n.into());
        out.push(fragment, PathId(n % 2), Instant::ZERO);
    }
    out
}

/// A SACK finds this TSN lost on its path.
fn loses(member: &mut dyn LossRecovery, out: &mut Outstanding, tsn: u32) -> PathVerdict {
    loses_after(None, member, out, tsn)
}

/// The same after a timeout of the path, before which the transmission `timed_out` was the latest.
fn loses_after(
    timed_out: Option<u64>,
    member: &mut dyn LossRecovery,
    out: &mut Outstanding,
    tsn: u32,
) -> PathVerdict {
    let sent = out.get(Tsn(tsn)).expect("it was sent");
    let facts = PathFacts {
        path: sent.path,
        grows: false,
        lost: 1,
        latest_lost: Some(sent.order),
        highest_lost: Some(Tsn(tsn)),
        timed_out,
    };
    let verdict = member.on_path_sack(&facts, out);
    out.mark_for_probe(Tsn(tsn));
    verdict
}

#[test]
fn the_association_recovers_once_and_with_sfr_each_path_does() {
    for (sfr, second) in [(false, false), (true, true)] {
        let (mut out, mut member) = (outstanding(), member("standard", sfr));
        assert!(loses(&mut *member, &mut out, 1).cuts, "RFC 9260 §7.2.4 (2)");
        assert!(!loses(&mut *member, &mut out, 3).cuts, "once per fast recovery");
        assert_eq!(loses(&mut *member, &mut out, 2).cuts, second, "the other path, sfr = {sfr}");
        assert_eq!([0, 1].map(|id| member.recovers(PathId(id))), [true, second]);
    }
}

#[test]
fn ns2_cuts_for_what_waits_on_every_path_or_for_the_lowest() {
    let both = [PathId(0), PathId(1)];
    for (sfr, cut) in [(true, &both[..]), (false, &both[..1])] {
        let (mut out, mut member) = (outstanding(), member("ns2", sfr));
        for tsn in [1, 2] {
            let verdict = loses(&mut *member, &mut out, tsn);
            assert_eq!((verdict.cuts, verdict.passes_cwnd), (false, true));
        }
        assert_eq!(member.cuts_for_waiting(&both, &out), cut, "sfr = {sfr}");
        let again = member.cuts_for_waiting(&both, &out);
        assert!(again.is_empty(), "nothing more is lost: {again:?}");
    }
}

#[test]
fn without_its_rules_an_agent_of_ns2_has_the_standard_ones() {
    let names: Vec<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    for sfr in [false, true] {
        let mut config = config("ns2", sfr);
        config.set("recovery_without", &names.join(", ")).expect("they are rules");
        let rules = config.recovery.build(&config).rules();
        assert_eq!(Rules { holds_data: false, ..rules }, Rules::standard(&config));
        assert_ne!(member("ns2", sfr).rules(), rules);
    }
}

#[test]
fn what_a_timeout_has_cut_the_window_for_does_not_cut_it_again_with_rack() {
    for (recovery, again) in [("standard", true), ("rack", false)] {
        let (mut out, mut member) = (outstanding(), member(recovery, true));
        let last = out.get(Tsn(5)).map(|sent| sent.order);
        member.on_path_timeout(PathId(0));
        let verdict = loses_after(last, &mut *member, &mut out, 3);
        assert_eq!((verdict.cuts, verdict.recovers), (again, false), "{recovery}");
        assert_eq!(member.recovers(PathId(0)), again, "the window may grow: {recovery}");
        let later = loses_after(last, &mut *member, &mut out, 7);
        assert_eq!(later.cuts, !again, "{recovery}: sent after the timeout");
    }
}

#[test]
fn a_rule_of_an_older_release_holds_in_that_release_only() {
    let rules = |profile: &str| {
        let config = Config::build(profile, "sctp", &[]).expect("it is one");
        config.recovery.build(&config).rules()
    };
    let facts = |profile: &str| {
        let rules = rules(profile);
        let beats = rules.heartbeats;
        [
            rules.verifies_first,
            beats.none_at_start,
            beats.one_at_a_time,
            beats.halved,
            !beats.repeated_at_once,
            !rules.t3.restarts_for_lower,
            rules.sacks.cum_ack_clears_errors,
        ]
    };
    let (yes, no) = (true, false);
    assert_eq!(facts("ns2"), [yes, no, no, no, no, no, no]);
    assert_eq!(facts("ns2-3.7"), facts("ns2"));
    assert_eq!(facts("ns2-3.6"), [no, yes, yes, no, no, no, no]);
    assert_eq!(facts("ns2-3.5"), facts("ns2-3.6"));
    assert_eq!(facts("ns2-3.4"), [no, yes, yes, yes, yes, yes, yes]);
}

//! A receiver that is killed at random moments: after its next start nothing unfinished is there
//! but what the next transfer goes on from, no file is wrong, and sending again works.
//! `MANYPATH_KILL_POINTS` says how often and `MANYPATH_KILL_SEED` when; `./check nightly` does it
//! often.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{MANYPATH, Receiver, listing, noise, send};
use tempfile::tempdir;

/// Files sent: some small ones and one that takes its time.
const FILES: usize = 20;
const LARGE: usize = 8_000_000;
/// Latest moment of a kill in µs after the sender began; a transfer takes about a third of that.
const LATEST_US: u64 = 150_000;

/// Every file there is, but for unfinished ones, is whole.
fn check(dir: &Path, from: &Path) {
    for name in listing(dir) {
        if !name.starts_with(".manypath-") {
            let same = fs::read(dir.join(&name)).unwrap() == fs::read(from.join(&name)).unwrap();
            assert!(same, "{name} is wrong");
        }
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |n| n.parse().expect("a number"))
}

fn moments() -> impl Iterator<Item = u64> {
    // A multiplicative generator is random enough for moments, and the same each time.
    let mut state = number("MANYPATH_KILL_SEED", 4711);
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) % LATEST_US
    })
}

#[test]
fn a_killed_receiver_leaves_only_what_the_next_transfer_goes_on_from() {
    let points = number("MANYPATH_KILL_POINTS", 6) as usize;
    let from = tempdir().unwrap();
    for i in 0..FILES {
        let len = if i == FILES / 2 { LARGE } else { i * 1000 };
        fs::write(from.path().join(format!("f{i}")), noise(len)).unwrap();
    }
    let files: Vec<_> = (0..FILES).map(|i| from.path().join(format!("f{i}"))).collect();
    let files: Vec<&Path> = files.iter().map(|file| file.as_path()).collect();
    let (mut unfinished, mut killed_midway) = (0, 0);
    for (point, moment) in moments().take(points).enumerate() {
        let to = tempdir().unwrap();
        // Each of these goes a way of its own.
        let more: &[&str] = [&[][..], &["--overwrite"], &["--named-parts"]][point % 3];
        let mut receiver = Receiver::start(to.path(), more);
        let mut sender = Command::new(MANYPATH)
            .arg("send")
            .args(&files)
            .arg(&receiver.ticket)
            .args(["--quiet", "--set", "association_timeout=1s"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_micros(moment));
        receiver.kill();
        sender.kill().unwrap();
        sender.wait().unwrap();
        check(to.path(), from.path());
        let left = listing(to.path());
        let parts = left.iter().filter(|name| name.starts_with(".manypath-")).count();
        unfinished += parts;
        killed_midway += usize::from((1..FILES).contains(&(left.len() - parts)) || parts > 0);

        let again = Receiver::start(to.path(), &["--once", "--overwrite"]);
        let left = listing(to.path());
        let may_stay = |name: &String| name.starts_with('f') || name.starts_with(".manypath-kept-");
        assert!(left.iter().all(may_stay), "point {point}: {left:?}");
        let (code, _, err) = send(&files, &again.ticket, &[]);
        assert_eq!(code, 0, "point {point}: {err}");
        assert_eq!(again.end().0, 0);
        assert_eq!(listing(to.path()).len(), FILES);
        check(to.path(), from.path());
    }
    // One moment of three or so is in the middle of a file.
    assert!(points < 30 || unfinished > 0, "unfinished files with names are seen");
    println!(
        "{points} kills: {killed_midway} between the first and the last file, {unfinished} unfinished files seen"
    );
}

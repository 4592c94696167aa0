//! `manypath decrypt`: a capture with its protected packets opened.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use manypath::Bytes;
use manypath::keys::{KeyLogError, NotOpened, Opener};
use manypath_trace::{Answer, RewriteError, Rewritten, rewrite_capture};
use serde_json::json;

use crate::args::DecryptArgs;
use crate::failure::{Failure, Result};
use crate::screen::output::{self, print};

/// Stands for standard input and standard output.
const STANDARD: &str = "-";

/// Runs the command.
pub(crate) fn run(args: &DecryptArgs) -> Result<()> {
    let is_to_output = args.out.as_os_str() == STANDARD;
    if is_to_output && args.report.json {
        let what = "--out - and --json both write to standard output";
        return Err(Failure::usage(what).hint("write the copy to a file"));
    }
    let mut opener = Opener::default();
    for file in &args.keys {
        learn(&mut opener, file)?;
    }
    let input: Box<dyn Read> = if args.capture.as_os_str() == STANDARD {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(&args.capture).map_err(|e| cannot_read(&args.capture, &e))?)
    };
    for file in args.keys.iter().chain([&args.capture]) {
        if is_same_file(file, &args.out) {
            let what = format!("--out: {} would be replaced by the copy of itself", file.display());
            return Err(Failure::usage(what).hint("name another file"));
        }
    }
    let input = unpacked(input).map_err(|e| cannot_read(&args.capture, &e))?;
    let output: Box<dyn Write> = if is_to_output {
        output::reserve();
        Box::new(io::stdout())
    } else {
        Box::new(create(&args.out)?)
    };
    let done = rewrite_capture(input, output, |packet| answer(&mut opener, packet));
    let done = match done {
        // Whoever reads the copy has seen enough.
        Err(RewriteError::Write(error)) if is_to_output && is_closed(&error) => return Ok(()),
        done => done.map_err(|error| failed(args, &error))?,
    };
    report(args, &done, is_to_output)
}

/// Unpacks a capture that gzip has packed (RFC 1952), as Wireshark does.
fn unpacked(input: Box<dyn Read>) -> io::Result<Box<dyn Read>> {
    const MAGIC: [u8; 2] = [0x1f, 0x8b];
    let (mut begin, mut input) = (Vec::new(), input);
    input.by_ref().take(MAGIC.len() as u64).read_to_end(&mut begin)?;
    let is_packed = begin == MAGIC;
    let whole = io::Cursor::new(begin).chain(input);
    Ok(if is_packed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
}

fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

fn learn(opener: &mut Opener, file: &Path) -> Result<()> {
    let log = File::open(file).map_err(|e| cannot_read(file, &e))?;
    let count = opener.read(BufReader::new(log)).map_err(|e| match e {
        KeyLogError::Line { line, error } => {
            Failure::usage(format!("{}:{line}: {error}", file.display()))
        }
        other => Failure::usage(format!("{}: {other}", file.display())),
    })?;
    if count == 0 {
        let what = format!("{} has no keys of DTLS chunks (SCTP_DTLS_KEY)", file.display());
        let hint = "set SSLKEYLOGFILE when you start send, recv or perf";
        return Err(Failure::usage(what).hint(hint));
    }
    Ok(())
}

fn answer(opener: &mut Opener, packet: &Bytes) -> Answer {
    match opener.open(packet) {
        Ok(opened) => Answer::Opened(opened),
        Err(NotOpened::NotProtected) => Answer::Plain,
        Err(reason) => Answer::Left(reason.name()),
    }
}

fn cannot_read(file: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("cannot read {}: {error}", file.display()))
}

fn failed(args: &DecryptArgs, error: &RewriteError) -> Failure {
    match error {
        RewriteError::Write(error) => {
            Failure::failed(format!("cannot write {}: {error}", args.out.display()))
        }
        RewriteError::NoCapture => Failure::usage(format!("{}: {error}", args.capture.display())),
        _ => Failure::failed(format!("{}: {error}", args.capture.display())),
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Makes the file for the copy. What was secret is plain in it, so only its owner may read it.
fn create(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let failed = |e: io::Error| Failure::usage(format!("cannot write {}: {e}", path.display()));
    let file = options.open(path).map_err(failed)?;
    // An existing file keeps its permissions when it is opened.
    #[cfg(unix)]
    if file.metadata().map_err(failed)?.is_file() {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    }
    Ok(file)
}

/// Reasons for which packets are left as they are, in words.
const REASONS: [(&str, &str); 8] = [
    ("no_keys", "of associations or epochs that the log does not have"),
    ("not_authentic", "that no key opens: damaged or forged"),
    ("restart", "protected by keys for restarts"),
    ("malformed", "with headers that make no sense"),
    ("cut_short", "of which the capture has only a part"),
    ("fragment", "that are fragments of IP packets"),
    ("link_type", "of interfaces of an unknown type"),
    ("block_type", "in an obsolete form of pcapng"),
];

fn report(args: &DecryptArgs, done: &Rewritten, is_to_output: bool) -> Result<()> {
    if args.report.json {
        let object = json!({
            "packets": done.packets,
            "written": done.written,
            "opened": done.opened,
            "not_protected": done.plain,
            "not_opened": done.left,
            "batches": done.batches,
            "cut_off": done.is_cut_off,
        });
        return print(&format!("{object}\n"));
    }
    if args.report.quiet {
        return Ok(());
    }
    let mut text =
        format!("{} packets: {} opened, {} not protected\n", done.packets, done.opened, done.plain);
    for (reason, count) in &done.left {
        let words = REASONS.iter().find(|(name, _)| name == reason).map_or(*reason, |(_, w)| w);
        text += &format!("  left as they are: {count} {words}\n");
    }
    if done.batches > 0 {
        text += &format!("  {} were several packets captured as one\n", done.batches);
    }
    if done.is_cut_off {
        text += "  the capture ends in the middle of a packet\n";
    }
    if is_to_output {
        eprint!("{text}");
    } else {
        print(&text)?;
    }
    Ok(())
}

//! Keys, certificates and `--insecure` on the command line.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{Receiver, code, listing, manypath, send, stderr, stdout};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

const TOKEN: &str = "correct horse";

/// A folder with a file to send.
fn file() -> (TempDir, PathBuf) {
    let from = tempdir().unwrap();
    let file = from.path().join("x");
    fs::write(&file, common::noise(300_000)).unwrap();
    (from, file)
}

/// The key that a new identity file has.
fn new_identity(path: &Path) -> String {
    let (_from, file) = file();
    let path = path.to_str().unwrap();
    // Nobody listens: the key is made all the same.
    let args = ["--identity", path, "--token", TOKEN, "--connect-timeout", "100 ms"];
    let (_, _, err) = send(&[&file], "127.0.0.1:9", &args);
    let key = err.split_whitespace().find(|word| word.starts_with("sha256:"));
    key.unwrap_or_else(|| panic!("{err}")).to_owned()
}

#[test]
fn known_keys_are_let_in_and_others_are_not() {
    let ((_from, file), to, keys) = (file(), tempdir().unwrap(), tempdir().unwrap());
    let path = |name: &str| keys.path().join(name).to_str().unwrap().to_owned();
    let sender = new_identity(&keys.path().join("sender"));
    let receiver_key = new_identity(&keys.path().join("receiver"));
    let receiving =
        ["--identity", &path("receiver"), "--allow", &sender, "--token", TOKEN, "--overwrite"];
    let mut receiver = Receiver::start(to.path(), &receiving);
    assert_eq!(receiver.listening["key"], *receiver_key);
    assert_eq!(receiver.listening["encrypted"], true);

    // A sender with another key, who has the ticket.
    let (code, _, err) = send(&[&file], &receiver.ticket, &["--identity", &path("other")]);
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("is not one that is expected"), "{err}");
    // A sender who expects another receiver.
    let dest = format!("127.0.0.1:{}", receiver.port);
    let sending = ["--identity", &path("sender"), "--token", TOKEN, "--peer"];
    let (code, result, err) = send(&[&file], &dest, &[&sending[..], &[&sender]].concat());
    assert_eq!((code, &result["encrypted"]), (5, &Value::Bool(false)), "{err}");
    assert_eq!(listing(to.path()), [] as [&str; 0]);

    for dest in [receiver.ticket.clone(), dest] {
        let is_ticket = dest.starts_with("manypath2:");
        let more = if is_ticket { &sending[..2] } else { &sending[..] };
        let peer = if is_ticket { &[][..] } else { &[&*receiver_key][..] };
        let (code, result, err) = send(&[&file], &dest, &[more, peer].concat());
        assert_eq!(code, 0, "{err}");
        assert_eq!(result["encrypted"], true);
        assert_eq!(result["peer_key"], *receiver_key);
        assert_eq!(receiver.result()["peer_key"], *sender);
    }
    assert_eq!(fs::read(to.path().join("x")).unwrap(), fs::read(&file).unwrap());
}

/// An authority, and what it issued, in PEM files.
struct Authority {
    dir: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new([] as [String; 0]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let dir = tempdir().unwrap();
        fs::write(dir.path().join("ca.pem"), issuer.pem()).unwrap();
        Authority { dir, issuer }
    }

    /// The options of an end with a certificate for this name, from `issuer`, that trusts us.
    fn options(&self, name: &str, issuer: &Authority) -> Vec<String> {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer.issuer).unwrap();
        let path = |what: &str| self.dir.path().join(what).to_str().unwrap().to_owned();
        let (cert_file, key_file) = (path(&format!("{name}.pem")), path(&format!("{name}.key")));
        fs::write(&cert_file, certificate.pem()).unwrap();
        fs::write(&key_file, key.serialize_pem()).unwrap();
        let options =
            ["--cert", &cert_file, "--key", &key_file, "--ca", &path("ca.pem")].map(str::to_owned);
        options.to_vec()
    }
}

fn words(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

#[test]
fn certificates_need_no_token_but_the_right_name_and_authority() {
    let ((_from, file), to) = (file(), tempdir().unwrap());
    let (ours, other) = (Authority::new(), Authority::new());
    let serving = ours.options("127.0.0.1", &ours);
    let receiver = Receiver::start(to.path(), &[&words(&serving)[..], &["--overwrite"]].concat());
    assert_eq!(receiver.ticket, "", "a ticket names no certificate");
    let at = |host: &str| format!("{host}:{}", receiver.port);

    let known = ours.options("sender", &ours);
    let (code, result, err) = send(&[&file], &at("127.0.0.1"), &words(&known));
    assert_eq!(code, 0, "{err}");
    assert!(result["peer_key"].as_str().unwrap().starts_with("certificate sha256:"), "{result}");
    fs::remove_file(to.path().join("x")).unwrap();

    // The certificate is not for this name.
    let (code, _, err) = send(&[&file], &at("localhost"), &words(&known));
    assert_eq!(code, 5, "{err}");
    // A sender of another authority, and one without certificate.
    let unknown = ours.options("stranger", &other);
    let (code, _, err) = send(&[&file], &at("127.0.0.1"), &words(&unknown));
    assert_eq!(code, 5, "{err}");
    let (code, _, err) = send(&[&file], &at("127.0.0.1"), &["--token", TOKEN]);
    assert_eq!(code, 5, "{err}");
    assert_eq!(listing(to.path()), [] as [&str; 0]);
}

/// `manypath send` of a file where the system's authorities are those in this file.
fn send_with_system_roots(file: &Path, dest: &str, options: &[&str], roots: &Path) -> Output {
    let mut command = Command::new(common::MANYPATH);
    command.arg("send").args(options).arg(file).arg(dest).arg("--json");
    command.env("SSL_CERT_FILE", roots).env_remove("SSL_CERT_DIR");
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn without_ca_the_system_s_authorities_vouch_for_receivers() {
    let ((_from, file), to) = (file(), tempdir().unwrap());
    let (ours, other) = (Authority::new(), Authority::new());
    let serving = ours.options("127.0.0.1", &ours);
    let receiver = Receiver::start(to.path(), &words(&serving));
    let at = |host: &str| format!("{host}:{}", receiver.port);
    let sending = ours.options("sender", &ours);
    let sending = &words(&sending)[..4];
    let root = |authority: &Authority| authority.dir.path().join("ca.pem");

    let output = send_with_system_roots(&file, &at("127.0.0.1"), sending, &root(&other));
    assert_eq!(code(&output), 5, "{}", stderr(&output));
    let output = send_with_system_roots(&file, &at("localhost"), sending, &root(&ours));
    assert_eq!(code(&output), 5, "another name: {}", stderr(&output));
    assert_eq!(listing(to.path()), [] as [&str; 0]);
    let output = send_with_system_roots(&file, &at("127.0.0.1"), sending, &root(&ours));
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(fs::read(to.path().join("x")).unwrap(), fs::read(&file).unwrap());

    for (name, content) in [("missing", None), ("empty", Some("")), ("junk", Some("no PEM"))] {
        let roots = to.path().join(name);
        if let Some(content) = content {
            fs::write(&roots, content).unwrap();
        }
        let output = send_with_system_roots(&file, &at("127.0.0.1"), sending, &roots);
        assert_eq!(code(&output), 2, "{name}: {}", stderr(&output));
        assert!(stderr(&output).contains("no certificates of authorities"), "{}", stderr(&output));
        assert!(stderr(&output).contains("--ca FILE"), "{}", stderr(&output));
    }
}

/// Everybody can get a certificate of a public authority: it does not say who may send.
#[test]
fn receivers_must_name_the_authorities_of_senders() {
    let ours = Authority::new();
    let serving = ours.options("127.0.0.1", &ours);
    for command in [&["recv"][..], &["perf", "server"]] {
        let args = [command, &["--port", "0"], &words(&serving)[..4]].concat();
        let output = manypath(&args);
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        assert!(stderr(&output).contains("--cert needs --ca here"), "{}", stderr(&output));
    }
}

#[test]
fn who_encrypts_and_who_does_not_refuse_each_other() {
    let ((_from, file), to) = (file(), tempdir().unwrap());
    let token = ["--token", TOKEN];
    for (at_receiver, at_sender) in [(&["--insecure"][..], &[][..]), (&[], &["--insecure"])] {
        let receiver = Receiver::start(to.path(), &[&token[..], at_receiver].concat());
        let dest = format!("127.0.0.1:{}", receiver.port);
        let (code, result, err) = send(&[&file], &dest, &[&token[..], at_sender].concat());
        assert_eq!((code, &result["encrypted"]), (5, &Value::Bool(false)), "{err}");
        assert!(err.contains("--insecure on one side"), "what to do: {err}");
    }
    assert_eq!(listing(to.path()), [] as [&str; 0]);

    let mut receiver = Receiver::start(to.path(), &["--insecure"]);
    assert_eq!(receiver.listening["encrypted"], false);
    let (code, result, err) = send(&[&file], &receiver.ticket, &["--insecure"]);
    assert_eq!((code, &result["encrypted"]), (0, &Value::Bool(false)), "{err}");
    assert!(err.contains("NOT encrypted"), "{err}");
    assert_eq!(receiver.result()["encrypted"], false);
}

#[test]
fn an_identity_that_others_can_read_is_refused() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("key");
    let key = new_identity(&path);
    assert!(key.len() == "sha256:".len() + 64, "{key}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let path = path.to_str().unwrap();
        let output = manypath(&["recv", "--port", "0", "--identity", path]);
        assert_eq!(code(&output), 2);
        assert!(stderr(&output).contains("chmod 600"), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
}

/// Secrets that a service reads may belong to a group: their user is told, and decides.
#[cfg(unix)]
#[test]
fn keys_that_others_can_read_are_said() {
    use std::os::unix::fs::PermissionsExt;
    let ((_from, file), to) = (file(), tempdir().unwrap());
    let ours = Authority::new();
    let options = ours.options("sender", &ours);
    let (key, log) = (&options[3], ours.dir.path().join("log"));
    let receiver = Receiver::start(to.path(), &words(&ours.options("127.0.0.1", &ours)));
    let dest = format!("127.0.0.1:{}", receiver.port);
    let said = |mode: u32, log_mode: Option<u32>| {
        let _ = fs::remove_file(to.path().join("x"));
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap()
        };
        set(Path::new(key), mode);
        let _ = fs::remove_file(&log);
        if let Some(mode) = log_mode {
            fs::write(&log, "").unwrap();
            set(&log, mode);
        }
        let mut command = Command::new(common::MANYPATH);
        command.arg("send").args(&options).arg(&file).arg(&dest).env("SSLKEYLOGFILE", &log);
        let output = command.output().unwrap();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let log_mode = fs::metadata(&log).unwrap().permissions().mode() & 0o777;
        (stderr(&output), log_mode)
    };
    let warning = |what: &str, path: &str| {
        format!("other users of this host can read the {what} in {path}; chmod 600 {path} hides")
    };
    let log_text = log.to_str().unwrap();
    for (mode, log_mode) in [(0o644, Some(0o640)), (0o640, Some(0o604))] {
        let (err, kept) = said(mode, log_mode);
        assert!(err.contains(&warning("private key", key)), "{err}");
        assert!(err.contains(&warning("keys", log_text)), "{err}");
        assert_eq!(Some(kept), log_mode, "it is the user's file");
    }
    for log_mode in [None, Some(0o600)] {
        let (err, made) = said(0o600, log_mode);
        assert!(!err.contains("other users"), "{err}");
        assert_eq!(made, 0o600);
    }
}

#[cfg(unix)]
#[test]
fn tickets_and_passwords_in_files_that_others_can_read_are_said() {
    use std::os::unix::fs::PermissionsExt;
    let ((from, file), to) = (file(), tempdir().unwrap());
    let receiver = Receiver::start(to.path(), &["--overwrite"]);
    let (ticket, via) = (from.path().join("a ticket"), from.path().join("relays"));
    fs::write(&ticket, &receiver.ticket).unwrap();
    fs::write(&via, "turn:ann:secret@127.0.0.1:9\n").unwrap();
    let at = |path: &Path| format!("@{}", path.display());
    for (mode, is_said) in [(0o644, true), (0o600, false)] {
        for path in [&ticket, &via] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let (code, _, err) = send(&[&file], &at(&ticket), &["--via", &at(&via)]);
        assert_eq!(code, 0, "{err}");
        for what in ["ticket in", "passwords in"] {
            assert_eq!(err.contains(&format!("can read the {what}")), is_said, "{what}: {err}");
        }
        // As a shell takes it.
        assert_eq!(err.contains("chmod 600 '"), is_said, "{err}");
    }
}

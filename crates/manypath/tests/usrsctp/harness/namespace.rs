//! Tests that need addresses and links of their own: each runs again in a new process, in a network
//! namespace that ends with it.

use std::future::Future;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::common_namespace::{namespaces_work, unshare};
use super::{TEST_LIMIT, env_is, interop, programs, skipped};

/// Set in the process that runs in the namespace.
const INSIDE: &str = "MANYPATH_USRSCTP_NAMESPACE";

/// Runs the test named `name` in a namespace in which `lo` has 127.0.0.1 and 127.0.0.2.
pub fn in_namespace(name: &str, test: impl Future<Output = ()>) {
    if env_is(INSIDE, "1") {
        run("ip link set lo up");
        run("ip addr add 127.0.0.2/8 dev lo");
        return interop(test);
    }
    if !skipped("MANYPATH_SKIP_USRSCTP") && namespaces_work(name) {
        programs::build();
        run_again(name);
    }
}

/// Runs the test named `name` in a namespace with two links to another one; it gets the [`Link`]s.
/// The near ends have the addresses 10.99.1.1 and 10.99.2.1, the far ends 10.99.1.2 and 10.99.2.2,
/// and fd00:99:1::1 and so on.
pub fn in_two_namespaces<T: Future<Output = ()>>(name: &str, test: impl FnOnce([Link; 2]) -> T) {
    in_namespace(name, async {
        let far = FarNamespace::new();
        let links = [1, 2].map(|number| far.link(number));
        test(links).await;
    });
}

fn run_again(name: &str) {
    let this = std::env::current_exe().expect("this program");
    let mut again = unshare();
    again.arg(this).args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let output = runtime.block_on(async {
        let mut command = tokio::process::Command::from(again);
        command.stdin(Stdio::null()).kill_on_drop(true);
        tokio::time::timeout(TEST_LIMIT + Duration::from_secs(10), command.output()).await
    });
    let output = output.expect("it ends in time").expect("it starts");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let passed = output.status.success() && out.contains("1 passed");
    assert!(passed, "{name} failed in its namespace:\n{out}\n{err}");
}

fn run(command: &str) {
    let mut words = command.split_whitespace();
    let program = words.next().expect("a program");
    let status = Command::new(program).args(words).status();
    assert!(status.is_ok_and(|s| s.success()), "failed: {command}");
}

/// A second namespace, kept alive by a process in it.
struct FarNamespace(std::sync::Arc<Keeper>);

struct Keeper(std::process::Child);

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl FarNamespace {
    fn new() -> FarNamespace {
        let lifetime = (TEST_LIMIT.as_secs() + 10).to_string();
        let child = Command::new("unshare").args(["--net", "sleep", &lifetime]).spawn();
        let keeper = Keeper(child.expect("unshare starts"));
        let of = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let pid = keeper.0.id().to_string();
        for _ in 0..500 {
            if of(&pid).is_some_and(|there| Some(there) != of("self")) {
                return FarNamespace(keeper.into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the second namespace did not appear");
    }

    fn link(&self, number: u32) -> Link {
        let pid = self.0.0.id();
        let link = Link { number, keeper: std::sync::Arc::clone(&self.0) };
        run(&format!("ip link add a{number} type veth peer name b{number} netns {pid}"));
        run(&format!("ip addr add 10.99.{number}.1/24 dev a{number}"));
        run(&format!("ip addr add fd00:99:{number}::1/64 dev a{number} nodad"));
        run(&format!("ip link set a{number} up"));
        let enter = link.far_prefix().join(" ");
        run(&format!("{enter} ip link set lo up"));
        run(&format!("{enter} ip addr add 10.99.{number}.2/24 dev b{number}"));
        run(&format!("{enter} ip addr add fd00:99:{number}::2/64 dev b{number} nodad"));
        run(&format!("{enter} ip link set b{number} up"));
        link
    }
}

/// A link between this namespace and the far one.
pub struct Link {
    number: u32,
    keeper: std::sync::Arc<Keeper>,
}

impl Link {
    /// The command that runs a program at the far end.
    pub fn far_prefix(&self) -> Vec<String> {
        let pid = self.keeper.0.id().to_string();
        ["nsenter", "--target", &pid, "--net"].map(str::to_owned).into()
    }

    /// Gives the near end another address, 10.99.N.LAST, or takes it away.
    pub fn has_address(&self, last: u8, has: bool) {
        let (n, change) = (self.number, if has { "add" } else { "del" });
        run(&format!("ip addr {change} 10.99.{n}.{last}/24 dev a{n}"));
    }

    /// Takes the far end down, or up again.
    pub fn cut(&self, cut: bool) {
        let state = if cut { "down" } else { "up" };
        let enter = self.far_prefix().join(" ");
        run(&format!("{enter} ip link set b{} {state}", self.number));
    }
}

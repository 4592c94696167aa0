use manypath_sim::scenario::Scenario;

use super::*;

fn plan(text: &str) -> Result<Plan, PlanError> {
    let scenario = Scenario::parse("test.toml", text).unwrap();
    Plan::new(&scenario.points().unwrap()[0].run, 1)
}

const TWO_PATHS: &str = r#"
    transfer.size = "1 MB"
    [[path]]
    rate = "8 Mbit/s"
    delay = "5 ms"
    [[path]]
    rate = "8 Mbit/s"
    delay = "5 ms"
    mtu = 9000
"#;

#[test]
fn each_end_of_a_path_is_an_interface() {
    let plan = plan(TWO_PATHS).unwrap();
    let [a, z] = plan.hosts.as_slice() else { panic!("two hosts") };
    assert_eq!(a.addresses_from(z), ["10.77.1.1", "10.77.2.1"]);
    assert_eq!(z.addresses_from(z), ["10.77.1.2", "10.77.2.2"]);
    let second = &z.interfaces[1];
    assert_eq!((second.device.as_str(), second.mtu, second.number), ("path2", 9000, 3));
    assert_eq!(second.peer, a.interfaces[1].address);
    let routed = &plan.bare.paths[1].ends;
    assert_eq!(routed[1].address, as_socket_addr(second.address));
}

#[test]
fn each_source_address_has_a_table_with_its_own_path_only() {
    let plan = plan(TWO_PATHS).unwrap();
    let commands = plan.hosts[0].commands(false);
    assert!(commands.contains("rule add from 10.77.2.1 lookup 101\n"), "{commands}");
    let of_table: Vec<_> = commands.lines().filter(|line| line.ends_with("table 101")).collect();
    assert_eq!(
        of_table,
        [
            "route add 10.77.2.2/32 dev path2 src 10.77.2.1 table 101",
            "route add unreachable default table 101"
        ]
    );
    assert!(!commands.contains("mptcp"));
    let commands = plan.hosts[0].commands(true);
    assert!(commands.contains("mptcp endpoint add 10.77.2.1 dev path2 signal\n"), "{commands}");
}

#[test]
fn names_are_fit_for_resolvers_and_shells_whatever_a_scenario_calls_its_hosts() {
    let host = HostPlan { name: "web server/2 \u{e9}\n".to_owned(), interfaces: Vec::new() };
    assert_eq!(host.host_name(), "web-server-2---");
    assert_eq!(host.variable(), "MANYPATH_ADDRESSES_WEB_SERVER_2___");
    let hosts = plan(TWO_PATHS).unwrap().hosts;
    let names = hosts_file(&hosts[0], &hosts);
    assert!(names.starts_with("10.77.1.1 a a-1\n10.77.2.1 a a-2\n10.77.1.2 z z-1\n"), "{names}");
}

#[test]
fn a_host_knows_the_addresses_that_it_reaches() {
    let plan = plan(
        r#"
        node = [{ name = "a" }, { name = "b" }, { name = "z" }]
        link = [
            { from = "a", to = "z", rate = "1 Mbit/s", delay = "1 ms" },
            { from = "b", to = "z", rate = "1 Mbit/s", delay = "1 ms" },
        ]
        flow = [{ from = "a", to = "z", size = "1 MB" }, { from = "b", to = "z", size = "1 MB" }]
        "#,
    );
    let hosts = plan.unwrap().hosts;
    let [a, b, z] = hosts.as_slice() else { panic!("three hosts") };
    assert_eq!(hosts_file(b, &hosts), "10.77.2.1 b b-1\n10.77.2.2 z z-2\n");
    assert_eq!(a.addresses_from(b), Vec::<String>::new());
    assert_eq!(z.addresses_from(a), ["10.77.1.2"]);
}

#[test]
fn a_scenario_that_renumbers_hosts_is_refused() {
    let text = format!("{TWO_PATHS}\n[[event]]\npath = 1\nat = \"1 s\"\nchange = \"renumber\"\n");
    let error = plan(&text).unwrap_err().to_string();
    assert_eq!(error, "the scenario cannot be emulated: it has changes of addresses");
}

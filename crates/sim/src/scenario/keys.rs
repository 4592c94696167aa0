//! Every key of the format: what the parser accepts and what the reference documents.

use std::fmt::Write as _;

/// A key of a table.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// The form of a value, for messages.
    form: &'static str,
    /// The value in force if the key is absent.
    default: &'static str,
    example: &'static str,
    doc: &'static str,
}

/// A kind of table.
#[derive(Debug)]
pub(super) struct Section {
    /// Its heading in the reference.
    title: &'static str,
    pub(super) keys: &'static [Key],
    /// Sections whose keys it has too.
    pub(super) more: &'static [&'static Section],
}

impl Section {
    /// The names of all keys it has.
    pub(super) fn names(&'static self) -> impl Iterator<Item = &'static str> + Clone {
        let of = |section: &'static Section| section.keys.iter().map(|key| key.name);
        of(self).chain(self.more.iter().flat_map(move |section| of(section)))
    }
}

/// `"name", "form", "default", "example": "what it means"`, one key a row.
macro_rules! keys {
    ($($name:literal, $form:literal, $default:literal, $example:literal: $doc:literal;)*) => {
        &[$(Key { name: $name, form: $form, default: $default, example: $example, doc: $doc }),*]
    };
}

const NONE: &[&Section] = &[];

pub(super) static SCENARIO: Section = Section {
    title: "The file",
    more: NONE,
    keys: keys! {
        "name", "text", "the file's name", "\"two lossy paths\"": "Name of the scenario in results.";
        "description", "text", "none", "\"8 MB over two paths\"": "Purpose of the scenario; `sim check` prints it.";
        "extends", "file", "none", "\"scenario.toml\"": "A file of the same folder with values for keys that this file lacks. Tables are merged key by key, lists are replaced as a whole.";
        "set", "table", "none", "{ \"path.2.loss\" = \"3 %\" }": "Dotted names and values, set after `extends`.";
        "seeds", "number, range or list", "1", "30, \"1..60\", [1, 2, 7]": "Seeds of the runs of each point: 30 means 1..30.";
        "time_limit", "time", "1 h", "\"500 s\"": "Simulated time at which a run ends even if it is not complete.";
        "transport", "table", "fast, adaptive", "{ preset = \"cmt\" }": "The engine's configuration, see below.";
        "protected", "true or false", "false", "true": "Protects every packet (SCTP's DTLS chunk), with a key that both ends share.";
        "transfer", "table or list of tables", "needed in the short form", "{ size = \"8 MB\" }": "Data to send over the paths.";
        "path", "list of tables", "short form", "[[path]]": "Independent paths between two hosts; the first is the primary.";
        "nat", "table", "none", "[nat.near]": "NATs around the hosts, see below; short form.";
        "node", "list of tables", "long form", "[[node]]": "Named places of the network.";
        "link", "list of tables", "long form", "[[link]]": "Links between nodes.";
        "topology", "table", "none", "{ file = \"backbone.graphml\" }": "Nodes and links from a file that another program wrote, beside those of [[node]] and [[link]]: see large-worlds.md. Long form.";
        "flow", "list of tables", "long form", "[[flow]]": "Transfers from node to node.";
        "traffic", "list of tables", "none", "[[traffic]]": "Cross-traffic from node to node; long form.";
        "event", "list of tables", "none", "[[event]]": "Changes of paths, links and NATs at given times.";
        "sweep", "table", "none", "[sweep]": "Values to combine, see below.";
    },
};

pub(super) static TRANSFER: Section = Section {
    title: "[transfer], [[transfer]] and the transfer of a [[flow]]",
    more: NONE,
    keys: keys! {
        "size", "size or \"endless\"", "needed", "\"8 MiB\"": "Bytes to send. A run ends when every transfer but the endless ones is acknowledged.";
        "start", "time", "0 s", "\"10 s\"": "When the application first calls send. The association begins with the first transfer.";
        "until", "time", "the end of the run", "\"60 s\"": "End of an endless transfer. It then counts as completed, whatever is still in flight.";
        "direction", "forward or reverse", "forward", "\"reverse\"": "Forward is from the associating host to the other.";
        "count", "number", "1", "3": "How many messages of this size to send, in order, on one stream.";
        "rate", "rate", "all at once", "\"1 Mbit/s\"": "User data per second. The application sends one message after the other at this rate; without it everything at once, as the send buffer has room.";
        "message", "size", "1000 B with `rate`, else a DATA chunk", "\"1200 B\"": "Length of each message but the last, up to 1 MiB.";
        "stream", "number", "0", "1": "The stream of the messages, below `outbound_streams` (16 unless set), up to 999.";
        "unordered", "true or false", "false", "true": "The messages are delivered as they come (U bit).";
        "lifetime", "time", "none", "\"150 ms\"": "Messages are given up so long after `send` (RFC 3758): `messages` in the result says how many came in time.";
        "max_retransmissions", "number", "none", "0": "Messages are given up when a chunk of theirs would be retransmitted more often (RFC 7496).";
        "latency", "true or false", "false", "true": "Measures message latency, from `send` to the delivery of the last byte, queueing included: `message_latency_p99_s` in the result.";
    },
};

pub(super) static LINK_SETTINGS: Section = Section {
    title: "A link: keys of [[path]], of each element of `hops`, and of [[link]]",
    more: NONE,
    keys: keys! {
        "rate", "rate or \"infinite\"", "needed", "\"10 Mbit/s\"": "Rate of the link, IP headers included. Each of these keys takes one value for both directions, or `{ forward = …, reverse = … }`.";
        "delay", "time", "needed", "\"25 ms\"": "Propagation delay, one way.";
        "loss", "ratio or table", "0 %", "\"1 %\"": "Probability that a packet is lost, independent of others; or a loss model, see below. With `hops`, the path's own value applies to its slowest hop; this holds for the keys below too.";
        "lost", "numbers of packets or \"none\"", "none", "\"17, 203 of 1000\"": "Loses these packets too, counted from 1 as they enter, and the same of each further 1000: losses that were seen on a real path.";
        "queue", "packets, size, bdp or \"unlimited\"", "1 bdp, at least 50 packets", "\"2 bdp\"": "Capacity of the drop-tail queue, including the packet being sent. A bdp is the path's lowest rate times its base round-trip time, in packets of 1500 bytes; for a `[[link]]`, its own rate times the longest base round-trip time of the paths over it.";
        "duplicate", "ratio", "0 %", "\"0.1 %\"": "Probability that a packet arrives twice.";
        "reorder", "table", "none", "{ probability = \"1 %\", by = \"5 ms\" }": "Delays some packets so that later ones pass them.";
        "red", "table", "none", "{ min = \"5 packets\", max = \"15 packets\" }": "Random early detection in addition to the queue's limit, see below.";
        "policer", "table", "none", "{ rate = \"5 Mbit/s\", burst = \"64 KiB\" }": "Drops packets that come faster than a token bucket fills, see below.";
        "pauses", "table", "none", "{ length = \"200 ms\", every = \"2 s\" }": "Regular pauses, as radio links have them: the link holds all packets, and sends them afterwards at its rate. Nothing is lost by it but what finds the queue full.";
        "jitter", "time", "0 s", "\"2 ms\"": "Upper bound of a uniform random extra delay; it causes reordering.";
        "corrupt", "ratio", "0 %", "\"0.1 %\"": "Probability that one to eight bits of a packet are flipped. The packet still crosses the links; the receiver's checksum (CRC32c) detects it and it is dropped.";
        "mtu", "bytes or \"unlimited\"", "unlimited", "1420": "Largest IP packet on the link, 68 or more. A larger one is dropped, or fragmented if its sender allows that. Hosts assume an interface of 1500 bytes, or the MTU of their first link if that is larger.";
        "icmp", "true or false", "true", "false": "Whether a packet that is too large causes a message with `mtu` to its sender; otherwise it is lost silently.";
    },
};

pub(super) static BOTH: Section = Section {
    title: "A value for each direction",
    more: NONE,
    keys: keys! {
        "forward", "as the key", "needed", "\"1 %\"": "From the associating host; of a [[link]], from the first node to the second.";
        "reverse", "as the key", "needed", "\"2 %\"": "Back.";
    },
};

pub(super) static LOSS: Section = Section {
    title: "A loss model in `loss`",
    more: NONE,
    keys: keys! {
        "model", "bernoulli or gilbert-elliott", "needed", "\"gilbert-elliott\"": "Bernoulli: each packet independently. Gilbert-Elliott: a good and a bad state with a probability of loss each; before each packet the state may change.";
        "probability", "ratio", "needed for bernoulli", "\"1 %\"": "The probability of loss.";
        "to_bad", "ratio", "needed for gilbert-elliott", "\"0.5 %\"": "Probability of a change from good to bad.";
        "to_good", "ratio", "needed for gilbert-elliott", "\"25 %\"": "Probability of a change from bad to good.";
        "loss_in_good", "ratio", "0 %", "\"0 %\"": "Probability of loss in the good state.";
        "loss_in_bad", "ratio", "100 %", "\"50 %\"": "Probability of loss in the bad state.";
    },
};

pub(super) static RED: Section = Section {
    title: "`red` (Floyd and Jacobson, 1993)",
    more: NONE,
    keys: keys! {
        "min", "packets", "5 packets", "\"5 packets\"": "Average length up to which nothing is dropped.";
        "max", "packets", "15 packets", "\"15 packets\"": "Average length at which the probability reaches `max_probability`.";
        "max_probability", "ratio", "10 %", "\"10 %\"": "Probability of a drop at `max`.";
        "weight", "ratio", "0.002", "0.002": "Weight of a new sample in the average.";
        "marks", "true or false", "false", "true": "Packets of senders that use ECN are marked instead of dropped, as long as not all would be dropped.";
        "gentle", "true or false", "true", "false": "The drop probability rises to 1 between `max` and twice `max`; otherwise everything is dropped from `max` on.";
        "mean_packet", "size", "500 B", "\"500 B\"": "A typical packet; it determines how fast the average of an idle link falls.";
    },
};

pub(super) static POLICER: Section = Section {
    title: "`policer`",
    more: NONE,
    keys: keys! {
        "rate", "rate", "needed", "\"5 Mbit/s\"": "The rate at which tokens come, IP headers included.";
        "burst", "size", "needed", "\"64 KiB\"": "Size of the bucket, 1500 bytes or more. It is full at first.";
    },
};

pub(super) static PAUSES: Section = Section {
    title: "`pauses`",
    more: NONE,
    keys: keys! {
        "length", "time", "needed", "\"200 ms\"": "Length of each pause.";
        "every", "time", "needed", "\"2 s\"": "From the begin of a pause to that of the next; more than `length`.";
        "first", "time", "as `every`", "\"1 s\"": "When the first pause begins, from the start of the run on.";
    },
};

pub(super) static REORDER: Section = Section {
    title: "`reorder`",
    more: NONE,
    keys: keys! {
        "probability", "ratio", "needed", "\"1 %\"": "Probability that a packet is delayed.";
        "by", "time", "needed", "\"5 ms\"": "Extra delay of such a packet.";
    },
};

pub(super) static SCHEDULES: Section = Section {
    title: "Changes of a [[path]] or [[link]]",
    more: NONE,
    keys: keys! {
        "down", "list of tables", "none", "[{ at = \"5 s\", for = \"5 s\" }]": "Outages: packets that enter are lost. With `for` the path returns, without it fails for good.";
        "rate_changes", "list of tables", "none", "[{ at = \"5 s\", to = \"1 Mbit/s\" }]": "New rates, of the slowest hop unless `hop` selects another.";
        "delay_changes", "list of tables", "none", "[{ at = \"5 s\", to = \"50 ms\" }]": "New delays, with the same rule.";
        "loss_changes", "list of tables", "none", "[{ at = \"5 s\", to = \"5 %\" }]": "New probabilities of loss, with the same rule.";
    },
};

pub(super) static WHEN: Section = Section {
    title: "Every change",
    more: NONE,
    keys: keys! {
        "at", "time", "needed", "\"5 s\"": "Time of the change.";
        "after", "start or first data", "start", "\"first data\"": "Origin of `at`: the start of the run, or the first DATA sent.";
        "direction", "both, forward or reverse", "both", "\"forward\"": "Direction that changes.";
        "hop", "number", "see the key", "2": "Only this hop of a path, counted from 1.";
    },
};

pub(super) static DOWN: Section = Section {
    title: "`down`",
    more: &[&WHEN],
    keys: keys! {
        "for", "time", "for good", "\"5 s\"": "Length of the outage. All hops are cut unless `hop` selects one.";
    },
};

pub(super) static CHANGE: Section = Section {
    title: "`rate_changes`, `delay_changes`, `loss_changes`",
    more: &[&WHEN],
    keys: keys! {
        "to", "as the key", "needed", "\"1 Mbit/s\"": "The new value.";
    },
};

pub(super) static PATH: Section = Section {
    title: "[[path]]",
    more: &[&LINK_SETTINGS, &SCHEDULES],
    keys: keys! {
        "name", "text", "its number", "\"wifi\"": "Its name in events, dotted names and explanations.";
        "cross", "table", "none", "{ load = \"50 %\" }": "Cross-traffic over the path's slowest hop, in both directions.";
        "rank", "normal, cost=N or backup", "normal", "\"cost=3\"": "Which paths carry data before it does, at both ends: see priorities.md.";
        "relay", "true or false", "false", "true": "The path is a relay's: it leads to an address on the Internet that a relay lends to host `z`, past the NATs of `z`. At host `a` it starts from the address of the first path without `relay`.";
        "hops", "list of tables", "one hop, of the path's own keys", "[{ rate = \"10 Mbit/s\", delay = \"25 ms\" }]": "A sequence of links in each direction.";
    },
};

pub(super) static NATS: Section = Section {
    title: "[nat]: whose NATs",
    more: NONE,
    keys: keys! {
        "near", "table or list of tables", "none", "[nat.near]": "The NATs around host `a`, the innermost first: its router, then its carrier's.";
        "far", "table or list of tables", "none", "[[nat.far]]": "The NATs around host `z`.";
        "shared", "table or list of tables", "none", "[nat.shared]": "The NATs around both hosts, outside those of each.";
    },
};

pub(super) static NAT: Section = Section {
    title: "A NAT (RFC 4787)",
    more: NONE,
    keys: keys! {
        "mapping", "endpoint-independent, address-dependent or address-and-port-dependent", "endpoint-independent", "\"address-dependent\"": "On what of a peer's address the port depends by which the peer sees a host.";
        "filtering", "endpoint-independent, address-dependent or address-and-port-dependent", "address-and-port-dependent", "\"endpoint-independent\"": "What of a peer's address must be that of a peer which the host has sent to, for its packets to enter.";
        "ports", "preserved or random", "preserved", "\"random\"": "The port of a new mapping: the host's, or the next that is free; or any from 1024 on.";
        "timeout", "time", "120 s", "\"30 s\"": "A mapping that nothing was sent from for so long is gone, and so is the permission of a peer that nothing was sent to.";
        "hairpin", "true or false", "false", "true": "Hosts behind the NAT reach each other by their addresses outside.";
    },
};

pub(super) static HOP: Section =
    Section { title: "An element of `hops`", more: &[&LINK_SETTINGS], keys: &[] };

/// The keys of cross-traffic wherever it is.
pub(super) static CROSS_SETTINGS: Section = Section {
    title: "Cross-traffic: keys of `cross` and [[traffic]]",
    more: NONE,
    keys: keys! {
        "model", "pareto, cbr or responsive", "pareto", "\"cbr\"": "Packets in Pareto bursts and pauses, at a constant rate, or (only [[traffic]]) associations with the preset sctp that send without end. The defaults are those of Natarajan et al., section V, and Caro et al., figure 2.";
        "load", "ratio, also above 100 %", "load or rate needed", "\"50 %\"": "Mean rate as a fraction of the slowest link's; `{ forward, reverse }` sets one per direction.";
        "rate", "rate", "load or rate needed", "\"5 Mbit/s\"": "Mean rate; also per direction.";
        "nodes", "number", "4", "1": "Number of sending nodes in each direction.";
        "generators", "number", "one for each size; responsive: 1", "8": "Generators at each node, which take the sizes in turn and all produce the same number of packets; or responsive associations.";
        "sizes", "list of bytes", "[44, 44, 44, 44, 576, 576, 1500, 1500]", "[1500]": "Sizes of the packets.";
        "shape", "number above 1", "1.5", "1.2": "Shape of the Pareto distributions.";
        "burst", "time", "500 ms", "\"1 s\"": "Mean length of a burst.";
        "idle", "time", "500 ms", "\"1 s\"": "Mean length of a pause.";
        "access_rate", "rate", "100 Mbit/s", "\"1 Gbit/s\"": "Rate of each node's own link.";
        "access_delay", "time, or least and most", "[\"5 ms\", \"20 ms\"]", "\"10 ms\"": "Delay of each node's own link; of two times, a random value between them.";
        "start", "time, or first and last", "[\"0 s\", \"5 s\"]; responsive: 0 s", "\"1 s\"": "Start of each generator.";
    },
};

pub(super) static CROSS: Section = Section {
    title: "`cross` of a [[path]]",
    more: &[&CROSS_SETTINGS],
    keys: keys! {
        "hop", "number", "the slowest", "2": "Hop that it crosses, counted from 1.";
    },
};

pub(super) static NODE: Section = Section {
    title: "[[node]]",
    more: NONE,
    keys: keys! {
        "name", "text", "needed", "\"server\"": "Its name in links, flows and traffic. Nodes at which flows or traffic end forward nothing; the others are routers.";
    },
};

pub(super) static LINK: Section = Section {
    title: "[[link]]",
    more: &[&LINK_SETTINGS, &SCHEDULES],
    keys: keys! {
        "name", "text", "FROM-TO", "\"core\"": "Its name in `via`, events and dotted names.";
        "from", "node", "needed", "\"client\"": "One end: forward leads away from it.";
        "to", "node", "needed", "\"router\"": "The other end.";
    },
};

pub(super) static TOPOLOGY: Section = Section {
    title: "[topology]",
    more: &[&LINK_SETTINGS],
    keys: keys! {
        "file", "file", "needed", "\"backbone.graphml\"": "A file in the folder of the scenario: GraphML as of the Internet Topology Zoo, the output of BRITE, or a list of relations of autonomous systems as CAIDA has it. `rate` and `delay` are for the links of which it has none; what else a link has is the same for all.";
        "format", "graphml, brite or as-rel", "as the file begins", "\"brite\"": "The form of the file.";
    },
};

pub(super) static FLOW: Section = Section {
    title: "[[flow]]",
    more: &[&TRANSFER],
    keys: keys! {
        "name", "text", "FROM to TO", "\"download\"": "Its name in results.";
        "from", "node", "needed", "\"client\"": "The host that associates.";
        "to", "node", "needed", "\"server\"": "The host that waits.";
        "path", "list of tables", "the shortest way over each link of the first node", "[{ via = [\"r1\"] }, { via = [\"r2\"] }]": "Its paths; the first is the primary.";
        "copies", "number", "1", "1000": "Number of such flows, each with hosts of its own. Results have them together, in `groups`.";
        "spread", "time", "0 s", "\"5 s\"": "Each flow starts at a random time within this one after its `start`.";
        "transport", "table", "none", "{ preset = \"sctp\" }": "Parameters that differ from [transport].";
        "transfer", "list of tables", "none", "[{ size = \"1 MB\", start = \"5 s\" }]": "More transfers on the same association.";
    },
};

pub(super) static ROUTE: Section = Section {
    title: "`path` of a [[flow]]",
    more: NONE,
    keys: keys! {
        "via", "list of nodes and links", "needed", "[\"r1\", \"core\", \"r2\"]": "Every node or link between the ends, in order. Name a link where several lead to the same node.";
        "rank", "normal, cost=N or backup", "normal", "\"backup\"": "As of a [[path]].";
    },
};

pub(super) static TRAFFIC: Section = Section {
    title: "[[traffic]]",
    more: &[&CROSS_SETTINGS],
    keys: keys! {
        "from", "node", "needed", "\"left\"": "Node at which it starts; its forward direction leads away from it.";
        "to", "node", "needed", "\"right\"": "Node at which it ends.";
        "via", "list of nodes and links", "the shortest way", "[\"r1\", \"r2\"]": "Every node or link between the ends, in order.";
        "until", "time", "the end of the run", "\"60 s\"": "End of responsive traffic.";
        "transport", "table", "none", "{ rto_min = \"200 ms\" }": "Parameters of responsive traffic that differ from [transport].";
    },
};

pub(super) static EVENT: Section = Section {
    title: "[[event]]",
    more: &[&WHEN],
    keys: keys! {
        "path", "number or name", "path, link or nat needed", "2": "The path that changes.";
        "link", "number or name", "path, link or nat needed", "\"core\"": "The link that changes.";
        "nat", "number or name", "path, link or nat needed", "\"near\"": "The NAT that reboots: `near`, `far` or `shared`; the second of a row is `near.2`.";
        "change", "cut, restore, renumber or reboot", "none", "\"cut\"": "`cut` and `restore` begin and end an outage. `renumber` replaces the address of one end of a path: its host is told, its peer is not, and packets in flight to the old address are lost. `reboot` makes a NAT forget its mappings; nobody is told.";
        "for", "time", "for good; 0 s", "\"5 s\"": "With cut: its length. With renumber: time for which the host has no address there.";
        "end", "near or far", "near", "\"far\"": "With renumber: the host whose address changes; near is the one that associates.";
        "rate", "rate", "none", "\"1 Mbit/s\"": "A new rate.";
        "delay", "time", "none", "\"50 ms\"": "A new delay.";
        "loss", "ratio", "none", "\"5 %\"": "A new probability of loss.";
        "duplicate", "ratio", "none", "\"1 %\"": "A new probability of duplication.";
        "jitter", "time", "none", "\"5 ms\"": "A new upper bound of the random extra delay.";
        "corrupt", "ratio", "none", "\"1 %\"": "A new probability of corruption.";
        "rank", "normal, cost=N or backup", "none", "\"backup\"": "A new rank of the path, at both ends.";
        "mtu", "bytes or \"unlimited\"", "none", "1280": "A new largest packet, of the slowest hop unless `hop` selects another.";
    },
};

/// The sections, in the order of the reference.
static ALL: &[&Section] = &[
    &SCENARIO,
    &TRANSFER,
    &PATH,
    &HOP,
    &LINK_SETTINGS,
    &BOTH,
    &LOSS,
    &RED,
    &POLICER,
    &PAUSES,
    &REORDER,
    &SCHEDULES,
    &DOWN,
    &CHANGE,
    &WHEN,
    &EVENT,
    &NATS,
    &NAT,
    &NODE,
    &LINK,
    &TOPOLOGY,
    &FLOW,
    &ROUTE,
    &TRAFFIC,
    &CROSS,
    &CROSS_SETTINGS,
];

/// The reference of all keys in Markdown, as `docs/scenarios.md` holds it.
pub fn key_reference() -> String {
    let mut text = String::new();
    for section in ALL {
        // Writing to a String does not fail.
        let _ = writeln!(text, "### {}\n", section.title);
        for other in section.more {
            let _ = writeln!(text, "Also the keys of *{}*.\n", other.title);
        }
        if section.keys.is_empty() {
            continue;
        }
        text += "| key | value | default | example | |\n| --- | --- | --- | --- | --- |\n";
        for Key { name, form, default, example, doc } in section.keys {
            let _ = writeln!(text, "| `{name}` | {form} | {default} | `{example}` | {doc} |");
        }
        text += "\n";
    }
    text
}

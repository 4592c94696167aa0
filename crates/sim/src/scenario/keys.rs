//! Every key of the format: what the parser accepts and what the reference documents.

use std::fmt::Write as _;

/// A key of a table.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// What a value looks like.
    form: &'static str,
    /// What holds if it is not there.
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
        "name", "text", "the file's name", "\"two lossy paths\"": "What the scenario is called in results.";
        "description", "text", "none", "\"8 MB over two paths\"": "What it shows; `sim check` prints it.";
        "extends", "file", "none", "\"scenario.toml\"": "Another file of the same folder whose keys hold where this file has none. Tables are merged key by key, lists are replaced as a whole.";
        "set", "table", "none", "{ \"path.2.loss\" = \"3 %\" }": "Dotted names and values, set after `extends`.";
        "seeds", "number, range or list", "1", "30, \"1..60\", [1, 2, 7]": "Seeds of the runs of each point: 30 means 1..30.";
        "time_limit", "time", "1 h", "\"500 s\"": "Simulated time at which a run ends, complete or not.";
        "transport", "table", "rfc9260, cmt-pf", "{ preset = \"cmt\" }": "The engine's configuration, see below.";
        "transfer", "table or list of tables", "needed in the short form", "{ size = \"8 MB\" }": "What is sent over the paths.";
        "path", "list of tables", "short form", "[[path]]": "Independent paths between two hosts; the first is the primary.";
        "node", "list of tables", "long form", "[[node]]": "Named places of the network.";
        "link", "list of tables", "long form", "[[link]]": "Links between nodes.";
        "flow", "list of tables", "long form", "[[flow]]": "Transfers from node to node.";
        "traffic", "list of tables", "none", "[[traffic]]": "Cross-traffic from node to node; long form.";
        "event", "list of tables", "none", "[[event]]": "Changes of paths and links at given times.";
        "sweep", "table", "none", "[sweep]": "Values to combine, see below.";
    },
};

pub(super) static TRANSFER: Section = Section {
    title: "[transfer], [[transfer]] and the transfer of a [[flow]]",
    more: NONE,
    keys: keys! {
        "size", "size or \"endless\"", "needed", "\"8 MiB\"": "Bytes to send. A run ends when every transfer but the endless ones is acknowledged.";
        "start", "time", "0 s", "\"10 s\"": "When the application first calls send. The association begins with the first transfer.";
        "until", "time", "the end of the run", "\"60 s\"": "When an endless transfer ends: it counts as completed then, whatever is still on its way.";
        "direction", "forward or reverse", "forward", "\"reverse\"": "Forward is from the associating host to the other.";
        "count", "number", "1", "3": "So many of this size, one after the other on the same stream.";
        "rate", "rate", "all at once", "\"1 Mbit/s\"": "The application hands over messages of 1000 bytes, so many bits of user data per second; else everything at once, a message for each DATA chunk, as the send buffer has room.";
        "latency", "true or false", "false", "true": "Whether the latencies of the messages are measured, each from its handing over to the delivery of its last byte, waiting in the send buffer included: `message_latency_p99_s` in the result.";
    },
};

pub(super) static LINK_SETTINGS: Section = Section {
    title: "A link: keys of [[path]], of each element of `hops`, and of [[link]]",
    more: NONE,
    keys: keys! {
        "rate", "rate or \"infinite\"", "needed", "\"10 Mbit/s\"": "How fast the link sends, IP headers included. Each of these keys takes one value for both directions, or `{ forward = …, reverse = … }`.";
        "delay", "time", "needed", "\"25 ms\"": "Propagation delay, one way.";
        "loss", "ratio or table", "0 %", "\"1 %\"": "Probability that a packet is lost, each by itself; or a loss model, see below. With `hops`, the path's own value is that of its slowest hop; so too for the keys below.";
        "queue", "packets, size, bdp or \"unlimited\"", "1 bdp, at least 50 packets", "\"2 bdp\"": "What the link holds, the packet being sent included; drop-tail. A bdp is the path's lowest rate times its base round-trip time, in packets of 1500 bytes; of a `[[link]]`, its own rate times the longest base round-trip time of the paths over it.";
        "duplicate", "ratio", "0 %", "\"0.1 %\"": "Probability that a packet arrives twice.";
        "reorder", "table", "none", "{ probability = \"1 %\", by = \"5 ms\" }": "Holds packets back so that later ones pass them.";
        "red", "table", "none", "{ min = \"5 packets\", max = \"15 packets\" }": "Random early detection beside the queue's limit, see below.";
        "jitter", "time", "0 s", "\"2 ms\"": "Upper bound of a uniform random extra delay; it reorders.";
        "corrupt", "ratio", "0 %", "\"0.1 %\"": "Probability that one to eight bits of a packet are flipped. It takes its time on the links; its receiver finds it by its checksum (CRC32c) and drops it.";
        "mtu", "bytes or \"unlimited\"", "unlimited", "1420": "The longest IP packet that the link takes, 68 or more. A longer one is dropped, or cut into fragments if its sender allows that. Hosts take 1500 bytes, or what their first link takes if that is more, for what their own interface takes.";
        "icmp", "true or false", "true", "false": "Whether a packet that is too long draws a message to the host that sent it, which names `mtu`; else it is lost in silence.";
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
        "model", "bernoulli or gilbert-elliott", "needed", "\"gilbert-elliott\"": "Bernoulli: each packet by itself. Gilbert-Elliott: a good and a bad state with a probability of loss each; before each packet the state may change.";
        "probability", "ratio", "needed for bernoulli", "\"1 %\"": "The probability of loss.";
        "to_bad", "ratio", "needed for gilbert-elliott", "\"0.5 %\"": "Probability to go from good to bad.";
        "to_good", "ratio", "needed for gilbert-elliott", "\"25 %\"": "Probability to go from bad to good.";
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
        "gentle", "true or false", "true", "false": "Whether the probability grows on to 1 from `max` to twice that; else everything is dropped from `max` on.";
        "mean_packet", "size", "500 B", "\"500 B\"": "A typical packet: how fast the average of an idle link falls.";
    },
};

pub(super) static REORDER: Section = Section {
    title: "`reorder`",
    more: NONE,
    keys: keys! {
        "probability", "ratio", "needed", "\"1 %\"": "Probability that a packet is held back.";
        "by", "time", "needed", "\"5 ms\"": "For how long.";
    },
};

pub(super) static SCHEDULES: Section = Section {
    title: "Changes of a [[path]] or [[link]]",
    more: NONE,
    keys: keys! {
        "down", "list of tables", "none", "[{ at = \"5 s\", for = \"5 s\" }]": "When it is cut: what enters is lost. With `for` it returns, without it fails for good.";
        "rate_changes", "list of tables", "none", "[{ at = \"5 s\", to = \"1 Mbit/s\" }]": "New rates, of the slowest hop unless `hop` says which.";
        "delay_changes", "list of tables", "none", "[{ at = \"5 s\", to = \"50 ms\" }]": "New delays, likewise.";
        "loss_changes", "list of tables", "none", "[{ at = \"5 s\", to = \"5 %\" }]": "New probabilities of loss, likewise.";
    },
};

pub(super) static WHEN: Section = Section {
    title: "Every change",
    more: NONE,
    keys: keys! {
        "at", "time", "needed", "\"5 s\"": "When.";
        "after", "start or first data", "start", "\"first data\"": "What `at` counts from: the start of the run, or the first DATA that leaves.";
        "direction", "both, forward or reverse", "both", "\"forward\"": "Which direction changes.";
        "hop", "number", "see the key", "2": "Only this hop of a path, counted from 1.";
    },
};

pub(super) static DOWN: Section = Section {
    title: "`down`",
    more: &[&WHEN],
    keys: keys! {
        "for", "time", "for good", "\"5 s\"": "How long. All hops are cut unless `hop` says which.";
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
        "name", "text", "its number", "\"wifi\"": "What it is called in events, dotted names and explanations.";
        "cross", "table", "none", "{ load = \"50 %\" }": "Cross-traffic over the path's slowest hop, both ways.";
        "hops", "list of tables", "one hop, of the path's own keys", "[{ rate = \"10 Mbit/s\", delay = \"25 ms\" }]": "Links in a row, each way.";
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
        "load", "ratio, also above 100 %", "load or rate needed", "\"50 %\"": "Mean rate as a share of the slowest link's; `{ forward, reverse }` for one each way.";
        "rate", "rate", "load or rate needed", "\"5 Mbit/s\"": "Mean rate; likewise.";
        "nodes", "number", "4", "1": "Nodes that send, each way.";
        "generators", "number", "one for each size; responsive: 1", "8": "Generators at each node, which take the sizes in turn and all make as many packets; or responsive associations.";
        "sizes", "list of bytes", "[44, 44, 44, 44, 576, 576, 1500, 1500]", "[1500]": "Sizes of the packets.";
        "shape", "number above 1", "1.5", "1.2": "Shape of the Pareto distributions.";
        "burst", "time", "500 ms", "\"1 s\"": "Mean length of a burst.";
        "idle", "time", "500 ms", "\"1 s\"": "Mean length of a pause.";
        "access_rate", "rate", "100 Mbit/s", "\"1 Gbit/s\"": "Rate of each node's own link.";
        "access_delay", "time, or least and most", "[\"5 ms\", \"20 ms\"]", "\"10 ms\"": "Delay of each node's own link; between two times it is drawn.";
        "start", "time, or first and last", "[\"0 s\", \"5 s\"]; responsive: 0 s", "\"1 s\"": "When each generator begins.";
    },
};

pub(super) static CROSS: Section = Section {
    title: "`cross` of a [[path]]",
    more: &[&CROSS_SETTINGS],
    keys: keys! {
        "hop", "number", "the slowest", "2": "The hop it crosses, counted from 1.";
    },
};

pub(super) static NODE: Section = Section {
    title: "[[node]]",
    more: NONE,
    keys: keys! {
        "name", "text", "needed", "\"server\"": "What links, flows and traffic call it. Where flows or traffic end, nothing is forwarded; other nodes are routers.";
    },
};

pub(super) static LINK: Section = Section {
    title: "[[link]]",
    more: &[&LINK_SETTINGS, &SCHEDULES],
    keys: keys! {
        "name", "text", "FROM-TO", "\"core\"": "What `via`, events and dotted names call it.";
        "from", "node", "needed", "\"client\"": "One end: forward leads away from it.";
        "to", "node", "needed", "\"router\"": "The other end.";
    },
};

pub(super) static FLOW: Section = Section {
    title: "[[flow]]",
    more: &[&TRANSFER],
    keys: keys! {
        "name", "text", "FROM to TO", "\"download\"": "What results call it.";
        "from", "node", "needed", "\"client\"": "The host that associates.";
        "to", "node", "needed", "\"server\"": "The host that waits.";
        "path", "list of tables", "the shortest way over each link of the first node", "[{ via = [\"r1\"] }, { via = [\"r2\"] }]": "Its paths; the first is the primary.";
        "transport", "table", "none", "{ preset = \"sctp\" }": "Parameters that differ from [transport].";
        "transfer", "list of tables", "none", "[{ size = \"1 MB\", start = \"5 s\" }]": "More transfers on the same association.";
    },
};

pub(super) static ROUTE: Section = Section {
    title: "`path` of a [[flow]]",
    more: NONE,
    keys: keys! {
        "via", "list of nodes and links", "needed", "[\"r1\", \"core\", \"r2\"]": "Every node or link between the ends, in order. Name a link where several lead to the same node.";
    },
};

pub(super) static TRAFFIC: Section = Section {
    title: "[[traffic]]",
    more: &[&CROSS_SETTINGS],
    keys: keys! {
        "from", "node", "needed", "\"left\"": "Where it begins; its forward direction leads away.";
        "to", "node", "needed", "\"right\"": "Where it ends.";
        "via", "list of nodes and links", "the shortest way", "[\"r1\", \"r2\"]": "Every node or link between, in order.";
        "until", "time", "the end of the run", "\"60 s\"": "When responsive traffic ends.";
        "transport", "table", "none", "{ rto_min = \"200 ms\" }": "Parameters of responsive traffic that differ from [transport].";
    },
};

pub(super) static EVENT: Section = Section {
    title: "[[event]]",
    more: &[&WHEN],
    keys: keys! {
        "path", "number or name", "path or link needed", "2": "The path that changes.";
        "link", "number or name", "path or link needed", "\"core\"": "The link that changes.";
        "change", "cut, restore or renumber", "none", "\"cut\"": "Cuts it, or ends the cut. Or takes the address of an end of a path away, and gives the host another: it is told of both, its peer of nothing, and what is on its way to the old address is lost.";
        "for", "time", "for good; 0 s", "\"5 s\"": "With a cut: how long. With renumber: how long the host has no address there.";
        "end", "near or far", "near", "\"far\"": "With renumber: whose address changes, that of the host that associates or of the other.";
        "rate", "rate", "none", "\"1 Mbit/s\"": "A new rate.";
        "delay", "time", "none", "\"50 ms\"": "A new delay.";
        "loss", "ratio", "none", "\"5 %\"": "A new probability of loss.";
        "duplicate", "ratio", "none", "\"1 %\"": "A new probability of duplication.";
        "jitter", "time", "none", "\"5 ms\"": "A new bound of the random extra delay.";
        "corrupt", "ratio", "none", "\"1 %\"": "A new probability of damage.";
        "mtu", "bytes or \"unlimited\"", "none", "1280": "Another longest packet. Like a new rate it is of the slowest hop unless `hop` says which.";
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
    &REORDER,
    &SCHEDULES,
    &DOWN,
    &CHANGE,
    &WHEN,
    &EVENT,
    &NODE,
    &LINK,
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

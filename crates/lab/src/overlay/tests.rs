use super::*;
use std::path::Path;

const TEXT: &str = "\
seeds = 2
beta = [0.3, 0.5, 0.8]
paths = [1, 4]

[network]
hosts = 8
routers = 30
links_per_router = 4.0
width_ms = 40
access_ms = [0.1, 1.0]
losses = [0.0001, 0.01]
";

fn file(text: &str) -> Result<File, LabError> {
    check(Source { path: Path::new("overlay.toml"), text })
}

fn shape() -> Shape {
    file(TEXT).expect("the text is right").network.into_inner()
}

#[test]
fn there_are_as_many_candidates_as_hosts_less_one_and_the_first_is_direct() {
    let network = Network::draw(&shape(), 1);
    assert_eq!(network.pairs().count(), 8 * 7 / 2);
    for pair in network.pairs() {
        let candidates = network.candidates(pair.0, pair.1);
        assert_eq!(candidates.len(), 7, "the direct path and one through each of the six others");
        let direct = candidates[0].route.latency();
        assert!(candidates.iter().all(|c| c.route.latency() >= direct && c.score > 0.0));
    }
}

#[test]
fn random_routes_are_a_placebo_with_other_disjoint_paths() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("999-test").join("test-overlay");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join(OVERLAY_FILE), TEXT).unwrap();
    let plan_with = |placebo: &str| {
        let text = format!(
            "title = 't'\nfigure = 'f'\nkind = 'overlay'\n[[placebo]]\nid = 'random'\nsays = 's'\n{placebo}"
        );
        std::fs::write(own.join("claims.toml"), text).unwrap();
        plan(&Experiment::load(&own).unwrap(), &Extent::default())
    };
    let planned = plan_with("seeds = 1\nset = { 'network.routes' = 'random' }").unwrap();
    let of = |variant: &str| {
        planned.points.iter().filter(|p| *p.variant == *variant).collect::<Vec<_>>()
    };
    let (real, random) = (of(SCENARIO), of("placebo-random"));
    assert_eq!((real.len(), random.len(), random[0].seeds.as_slice()), (6, 6, &[1][..]));
    let mean = |point: &PlannedPoint| {
        let data = point.run.run(1, None).unwrap();
        data.fields["disjoint_paths_mean"].clone()
    };
    assert_ne!(format!("{:?}", mean(real[2])), format!("{:?}", mean(random[2])));
    for wrong in [
        "set = { 'network.hosts' = '3' }",
        "set = { 'network.routes' = 'random' }\nat = { beta = '0.3' }",
    ] {
        let error = plan_with(wrong).err().unwrap().to_string();
        assert!(error.contains("`random` does not set `network.routes` alone"), "{error}");
    }
}

#[test]
fn the_larger_beta_the_fewer_disjoint_paths() {
    let shape = Arc::new(shape());
    let of = |beta| {
        let counts = Counts { shape: Arc::clone(&shape), beta, known: Mutex::default() };
        let all: Vec<_> = (1..=5).flat_map(|seed| counts.of(seed).to_vec()).collect();
        assert!(all.iter().all(|n| (1..=7).contains(n)), "at least the best, at most all");
        all.iter().sum::<usize>()
    };
    let sums = [0.0, 0.3, 0.5, 0.8, 0.99].map(of);
    assert!(sums.is_sorted_by(|a, b| a >= b) && sums[1] > sums[3], "{sums:?}");
}

#[test]
fn a_network_follows_from_its_seed() {
    let counts = |seed| {
        let shape = Arc::new(shape());
        Counts { shape, beta: 0.5, known: Mutex::default() }.of(seed)
    };
    assert_eq!(counts(3), counts(3));
    assert_ne!(counts(3), counts(4));
}

#[test]
fn rows_say_how_many_pairs_have_at_most_so_many_paths() {
    let counts = Arc::new(Counts { shape: Arc::new(shape()), beta: 0.5, known: Mutex::default() });
    let row = |paths| AtMost { counts: Arc::clone(&counts), paths }.run(1, None).unwrap().fields;
    let number = |fields: &Fields, name: &str| fields[name].number().unwrap();
    assert_eq!(number(&row(0), "pairs_with_at_most"), 0.0, "every pair has a path");
    assert_eq!(number(&row(7), "pairs_with_at_most"), 1.0);
    let (few, more) = (row(1), row(2));
    assert!(number(&few, "pairs_with_at_most") <= number(&more, "pairs_with_at_most"));
    assert_eq!(few["disjoint_paths_mean"], more["disjoint_paths_mean"]);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (old, new, expected) in [
        ("seeds = 2", "seeds = 0", "overlay.toml:1: `seeds = 0`; write a number"),
        ("[0.3, 0.5, 0.8]", "[0.3, 1.5]", "overlay.toml:2: `beta` has no value, too many"),
        ("[0.3, 0.5, 0.8]", "[nan]", "overlay.toml:2: `beta` has no value, too many"),
        ("[1, 4]", "[]", "overlay.toml:3: `paths` has no value"),
        ("hosts = 8", "hosts = 1", "overlay.toml:5: 1 hosts and 30 routers; 2 to 200"),
        ("routers = 30", "routers = 100000", "2 to 1000 routers"),
        ("= 4.0", "= 100.0", "overlay.toml:5: 100 links of a router"),
        ("[0.1, 1.0]", "[1.0, 0.1]", "the least is above the most"),
        ("[0.0001, 0.01]", "[1.0]", "`losses` has no value"),
        ("routers = 30", "", "missing field `routers`"),
        ("routers = 30", "rooters = 30", "unknown field `rooters`"),
    ] {
        let text = TEXT.replace(old, new);
        assert_ne!(text, TEXT);
        let error = file(&text).expect_err(new).to_string();
        assert!(error.contains(expected), "{new}: {error}");
    }
}

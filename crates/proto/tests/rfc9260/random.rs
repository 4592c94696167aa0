//! Arbitrary scripts, and those that once broke something.

use manypath_proto::Rng;
use manypath_proto::testing::fuzz::run;

#[test]
fn random_scripts_break_nothing() {
    let scripts =
        std::env::var("MANYPATH_RANDOM_SCRIPTS").map_or(3000, |n| n.parse().expect("a number"));
    for seed in 0..scripts {
        let mut rng = Rng::from_number(seed);
        let mut bytes = vec![0; 40 + rng.below(600) as usize];
        rng.fill(&mut bytes);
        let caught = std::panic::catch_unwind(|| run(&bytes));
        assert!(caught.is_ok(), "script {seed}, {} bytes", bytes.len());
    }
}

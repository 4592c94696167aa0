//! Transfers onto a disk that fails. Many more: the example `disk_faults`.

use manypath_files::testing::{Outcomes, run};

#[test]
fn no_file_under_its_final_name_is_ever_wrong_and_nothing_is_left() {
    let mut all = Outcomes::default();
    for seed in 0..1000 {
        match run(seed) {
            Ok(outcomes) => all.add(&outcomes),
            Err(why) => panic!("seed {seed}: {why}"),
        }
    }
    // The faults happen: else this would hold of anything.
    assert!(all.kills > 200 && all.power_losses > 400, "{all:?}");
    assert!(all.stored > 1000 && all.refused > 100 && all.cleaned > 10, "{all:?}");
    assert!(all.lies_that_cost > 5, "a disk that lies is noticed: {all:?}");
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    for seed in [3, 14, 15] {
        assert_eq!(run(seed), run(seed));
    }
}

//! The functions of the fuzz targets, run with random bytes.

use manypath_files::testing::{fuzz_frame, fuzz_ticket};
use manypath_proto::Rng;

#[test]
fn random_bytes_break_no_parser() {
    for seed in 0..20_000 {
        let mut rng = Rng::from_number(seed);
        let mut bytes = vec![0; rng.below(120) as usize];
        rng.fill(&mut bytes);
        if let Some(first) = bytes.first_mut() {
            // A type of a frame more often than by chance.
            *first &= 0x17;
        }
        fuzz_frame(&bytes);
        fuzz_ticket(&bytes);
    }
}

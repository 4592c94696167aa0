//! Ten thousand associations in one world: memory, counted by the allocator, and that nothing is
//! done for all of them at each step.

use std::alloc::System;

use cap::Cap;
use manypath_sim::secs;
use manypath_sim::testing::many::{Many, warm_up};

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// Bytes of an association, both ends and all that the network knows of it, that is open and has
/// nothing in its buffers.
const MOST_BYTES: usize = 50_000;

/// Memory for each association once each has sent 3 kB.
fn bytes_each(associations: usize) -> usize {
    let many = Many {
        associations,
        preset: "cmt-pf".to_owned(),
        overrides: Vec::new(),
        bytes: Some(3000),
        seed: 1,
    };
    let before = HEAP.allocated();
    let (mut world, flows) = many.build().expect("a preset");
    world.run_until(secs(4));
    for flow in &flows {
        assert_eq!(world.host(flow.to).received_bytes(), 3000);
        assert!(world.host(flow.from).has_been_acked_all());
    }
    assert_eq!(world.net.bytes_under_way(), 0, "nothing is in a buffer");
    (HEAP.allocated() - before) / associations
}

// One test: what others allocate meanwhile would count.
#[test]
fn an_association_takes_at_most_50_kb_however_many_there_are() {
    warm_up();
    let (few, many) = (bytes_each(100), bytes_each(10_000));
    assert!(many <= MOST_BYTES, "{many} bytes an association");
    assert!(many as f64 <= few as f64 * 1.15, "{few} bytes each of 100, {many} of 10,000");
}

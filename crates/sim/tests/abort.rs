//! How an association that is aborted ends at its peer.

use manypath_proto::{AssocClosed, PathId};
use manypath_sim::{Pair, secs};

#[test]
fn an_abort_s_reason_arrives_if_any_path_works() {
    for lost in 0..2 {
        let mut t = Pair::two_paths("cmt").rate_mbps(10.0).delay_ms(20.0).seed(3).connect();
        t.a.send_file(4 << 20);
        t.run_until(secs(2));
        t.net.path(lost).cut();
        t.a.abort("enough");
        t.run_until(secs(4));
        let Some(AssocClosed::PeerAborted { reason, .. }) = t.z.closed() else {
            panic!("path {lost} lost: {:?}", t.z.closed());
        };
        assert_eq!(&reason[..], b"enough", "path {:?} lost", PathId(lost as u8));
    }
}

#[test]
fn an_abort_s_reason_is_not_overtaken_on_another_path() {
    // What is still on its way from `z` over the short path is answered while the long one is full.
    let mut t = Pair::two_paths("cmt")
        .rate_mbps(10.0)
        .path(0, |p| p.delay_ms(200.0))
        .path(1, |p| p.delay_ms(5.0))
        .seed(3)
        .connect();
    t.a.send_file(8 << 20);
    t.run_until(secs(3));
    t.a.abort("enough");
    t.run_until(secs(5));
    let Some(AssocClosed::PeerAborted { reason, .. }) = t.z.closed() else {
        panic!("{:?}", t.z.closed());
    };
    assert_eq!(&reason[..], b"enough");
}

//! Spreads runs over threads. The results are in the order of the runs for any number of threads.

use std::any::Any;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// Runs jobs 0, 1, … `count - 1` on `jobs` threads and passes each result to `each` in order.
///
/// Once `cancel` is true, no further job starts; started ones finish, and their results are passed
/// on. Returns the number of results passed, which are always the first ones. If a job panics, its
/// error is the message of the panic.
pub fn run_in_order<T: Send>(
    count: usize,
    jobs: NonZeroUsize,
    cancel: &AtomicBool,
    work: impl Fn(usize) -> Result<T, String> + Sync,
    mut each: impl FnMut(usize, Result<T, String>),
) -> usize {
    let next = AtomicUsize::new(0);
    // Bounded, so that cancelling stops the jobs soon after the results that led to it.
    let (sender, results) = mpsc::sync_channel(jobs.get());
    let worker = |sender: mpsc::SyncSender<_>| {
        while !cancel.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            let result = catch_unwind(AssertUnwindSafe(|| work(number)));
            let result = result.unwrap_or_else(|panic| Err(panic_message(panic.as_ref())));
            if sender.send((number, result)).is_err() {
                break;
            }
        }
    };
    let mut given = 0;
    std::thread::scope(|scope| {
        for _ in 0..jobs.get().min(count) {
            let sender = sender.clone();
            scope.spawn(|| worker(sender));
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        for (number, result) in results {
            waiting.insert(number, result);
            while let Some(result) = waiting.remove(&given) {
                each(given, result);
                given += 1;
            }
        }
    });
    given
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("without a message"))
}

/// As many jobs as the machine has processors for this process.
pub fn all_processors() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn jobs(n: usize) -> NonZeroUsize {
        NonZeroUsize::new(n).unwrap()
    }

    #[test]
    fn results_come_in_order_whatever_the_number_of_jobs() {
        let cancel = AtomicBool::new(false);
        // The first jobs take longest, so that the later ones are ready before them.
        let work = |n: usize| {
            std::thread::sleep(Duration::from_millis(if n < 3 { 20 } else { 0 }));
            Ok(n * n)
        };
        for number_of_jobs in [1, 2, 8] {
            let mut seen = Vec::new();
            let given = run_in_order(50, jobs(number_of_jobs), &cancel, work, |n, result| {
                seen.push((n, result.unwrap()));
            });
            assert_eq!(given, 50);
            assert_eq!(seen, (0..50).map(|n| (n, n * n)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_panic_is_an_error_of_its_run_only() {
        let cancel = AtomicBool::new(false);
        let work = |n: usize| if n == 1 { panic!("run {n} broke") } else { Ok(n) };
        let mut seen = Vec::new();
        run_in_order(3, jobs(2), &cancel, work, |_, result| seen.push(result));
        assert_eq!(seen, [Ok(0), Err("panicked: run 1 broke".to_owned()), Ok(2)]);
    }

    #[test]
    fn what_is_done_when_cancelled_is_given_and_is_the_beginning() {
        let cancel = AtomicBool::new(false);
        let work = |n: usize| {
            if n == 10 {
                cancel.store(true, Ordering::Relaxed);
            }
            Ok(n)
        };
        let mut seen = Vec::new();
        let given = run_in_order(1000, jobs(3), &cancel, work, |n, _| seen.push(n));
        assert!((11..=14).contains(&given), "{given}");
        assert_eq!(seen, (0..given).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_to_do_is_done_at_once() {
        let cancel = AtomicBool::new(false);
        assert_eq!(run_in_order(0, jobs(4), &cancel, Ok, |_, _| {}), 0);
    }
}

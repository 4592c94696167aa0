//! The memory that this host has left, as far as the system says.

use std::fs;

/// The memory for buffers that grow, in bytes, where the system says nothing.
const UNKNOWN: usize = 256 << 20;

/// A quarter of what is free, in bytes: within the limits of the control group, if there is one.
pub(crate) fn quarter_of_free() -> usize {
    let host = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    let group = |name: &str| {
        let text = fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?;
        text.trim().parse::<usize>().ok()
    };
    let rest = group("memory.max").zip(group("memory.current"));
    let rest = rest.map(|(max, used)| max.saturating_sub(used));
    host.into_iter().chain(rest).min().map_or(UNKNOWN, |free| free / 4)
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn available(meminfo: &str) -> Option<usize> {
    let value = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_available_memory_is_read_and_nonsense_is_nothing() {
        let text = "MemTotal:       16384 kB\nMemFree: 100 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available(text), Some(2 << 20));
        for nonsense in ["", "MemAvailable: many kB", "MemAvailable: 3", "MemTotal: 3 kB"] {
            assert_eq!(available(nonsense), None, "{nonsense}");
        }
    }
}

use proptest::prelude::*;

use super::*;

#[test]
fn durations_in_every_unit() {
    for (text, nanoseconds) in [
        ("200 ms", 200_000_000),
        ("1 s", 1_000_000_000),
        ("30us", 30_000),
        ("30 µs", 30_000),
        ("30 μs", 30_000),
        ("2 min", 120_000_000_000),
        ("1 h", 3_600_000_000_000),
        ("1.5 s", 1_500_000_000),
        (" 7  ns ", 7),
        ("0", 0),
        ("0 s", 0),
        ("0.4 ns", 0),
        ("0.5 ns", 1),
    ] {
        assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
    }
}

#[test]
fn sizes_in_powers_of_1000_and_1024() {
    for (text, bytes) in [
        ("64 KiB", 65_536),
        ("1 MB", 1_000_000),
        ("8 MiB", 8_388_608),
        ("1500 B", 1500),
        ("1500", 1500),
        ("1kB", 1000),
        ("64 KB", 64_000),
        ("0.5 KiB", 512),
        ("3 GiB", 3 << 30),
        ("2 TB", 2_000_000_000_000),
        ("18446744073709551615 B", u64::MAX),
    ] {
        assert_eq!(parse_size(text), Ok(bytes), "{text}");
    }
}

#[test]
fn rates_in_bits_and_bytes() {
    for (text, bits) in [
        ("10 Mbit/s", 10_000_000),
        ("1 Gbit/s", 1_000_000_000),
        ("100 kB/s", 800_000),
        ("1 KiB/s", 8192),
        ("0.2 Mbps", 200_000),
        ("1 bit/s", 1),
    ] {
        assert_eq!(parse_rate(text), Ok(bits), "{text}");
    }
}

#[test]
fn ratios_in_three_forms_round_once() {
    for (text, ratio) in [
        ("0.01", 0.01),
        ("1 %", 0.01),
        ("0.1%", 0.001),
        ("7 %", 0.07),
        ("1/8", 0.125),
        ("0", 0.0),
        ("100 %", 1.0),
    ] {
        assert_eq!(parse_ratio(text), Ok(ratio), "{text}");
    }
}

#[test]
fn what_is_no_value_names_the_accepted_forms() {
    for text in [
        "", "s", "200", "-1 s", "1 sec", "1,5 s", "1..5 s", ".5 s", "5. s", "1e3 s", "1 s s", "١ s",
    ] {
        let error = parse_duration(text).unwrap_err();
        assert_eq!((error.kind, error.text.as_str()), ("duration", text));
        assert!(error.to_string().contains("ms"), "{error}");
    }
    for text in
        ["", "1.5 B", "0.5", "64 kib", "64 Kb", "-1", "18446744073709551616", "99999999999 TiB"]
    {
        assert!(parse_size(text).is_err(), "{text}");
    }
    for text in ["10", "10 Mbit", "10 MBIT/s", "fast", "99999999999 Tbit/s"] {
        assert!(parse_rate(text).is_err(), "{text}");
    }
    for text in
        ["", "%", "101 %", "1.1", "-0.1", "1/0", "0/0", "9/8", "NaN", "inf", "1e-3", "1 % %"]
    {
        assert!(parse_ratio(text).is_err(), "{text}");
    }
}

#[test]
fn prints_the_shortest_exact_form() {
    for (value, text) in [
        (Duration::ZERO, "0 s"),
        (Duration::from_millis(200), "200 ms"),
        (Duration::from_secs(60), "60 s"),
        (Duration::from_secs(7200), "2 h"),
        (Duration::from_micros(1500), "1500 us"),
    ] {
        assert_eq!(print_duration(value), text);
    }
    for (bytes, text) in
        [(0, "0 B"), (1452, "1452 B"), (65_536, "64 KiB"), (8_000_000, "8 MB"), (8 << 20, "8 MiB")]
    {
        assert_eq!(print_size(bytes), text);
    }
    assert_eq!(print_rate(10_000_000), "10 Mbit/s");
    assert_eq!(print_rate(0), "0 bit/s");
    assert_eq!(print_ratio(0.01), "0.01");
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(seconds: u64, nanoseconds in 0_u32..1_000_000_000, number: u64, ratio in 0.0..=1.0) {
        let duration = Duration::new(seconds, nanoseconds);
        prop_assert_eq!(parse_duration(&print_duration(duration)), Ok(duration));
        prop_assert_eq!(parse_size(&print_size(number)), Ok(number));
        prop_assert_eq!(parse_rate(&print_rate(number)), Ok(number));
        prop_assert_eq!(parse_ratio(&print_ratio(ratio)), Ok(ratio));
    }

    // Random numbers rarely divide by a large unit; multiples of each do.
    #[test]
    fn multiples_of_every_unit_read_back(count in 0_u64..10_000, unit in 0_usize..10) {
        let (_, size) = SIZES[unit % SIZES.len()];
        let bytes = count * size;
        prop_assert_eq!(parse_size(&print_size(bytes)), Ok(bytes));
        let (_, time) = DURATIONS[unit % DURATIONS.len()];
        let duration = Duration::from_nanos(count * (time / 1000).max(1));
        prop_assert_eq!(parse_duration(&print_duration(duration)), Ok(duration));
    }

    #[test]
    fn no_text_panics(text in "\\PC*", number in "[0-9.]{0,60} ?(s|ms|B|TiB|Tbit/s|%)?") {
        for text in [text, number] {
            let _ = (parse_duration(&text), parse_size(&text), parse_rate(&text), parse_ratio(&text));
        }
    }
}

use super::*;

fn derive(text: &str) -> Result<Derive, String> {
    Derive::new(toml::from_str(text).map_err(|e: toml::de::Error| e.message().to_owned())?)
}

fn value(text: &str) -> Cell {
    let field = |name: &str| match name {
        "a" => Some(1.0),
        "b" => Some(2.0),
        "c" => Some(4.0),
        _ => None,
    };
    let series = |name: &str, points: &[(f64, f64)]| Series {
        name: name.to_owned(),
        points: points.to_vec(),
    };
    let all = [
        series("x", &[(0.0, 1.0), (1.0, 3.0), (3.0, 2.0), (4.0, 0.0)]),
        series("y", &[(2.0, 10.0), (4.0, 10.0)]),
    ];
    derive(text).unwrap().value(&field, &all)
}

#[test]
fn sums_and_quotients() {
    assert_eq!(value("name = 't'\nsum = ['a', 'b']"), Cell::Float(3.0));
    assert_eq!(value("name = 't'\nsum = ['a', 'b']\nper = ['c']\nscale = 2"), Cell::Float(1.5));
    assert_eq!(value("name = 't'\nsum = ['c']\nless = ['a', 'b']"), Cell::Float(1.0));
    assert_eq!(value("name = 't'\nsum = ['a', 'no']"), Cell::Null);
}

#[test]
fn values_of_series() {
    let of = |rest: &str| value(&format!("name = 't'\nseries = ['x']\n{rest}"));
    assert_eq!(of("take = 'last'\nto = '2 s'"), Cell::Float(3.0));
    assert_eq!(of("take = 'max'"), Cell::Float(3.0));
    assert_eq!(of("take = 'min'\nto = '3500 ms'"), Cell::Float(1.0));
    // 1 for 1 s, 3 for 2 s, 2 for 1 s.
    assert_eq!(of("take = 'mean'"), Cell::Float(9.0 / 4.0));
    assert_eq!(of("take = 'mean'\nfrom = '2 s'\nto = '4 s'"), Cell::Float(2.5));
    assert_eq!(of("take = 'first-at-least'\nvalue = 2.5"), Cell::Float(1.0));
    assert_eq!(of("take = 'first-at-most'\nvalue = 2\nfrom = '2 s'"), Cell::Float(3.0));
    assert_eq!(of("take = 'first-at-least'\nvalue = 9"), Cell::Null);
    // 1, 3, 2, 0: up to 3, down to 0. A rest at 2 is no crossing of 2.
    assert_eq!(of("take = 'crossings'\nvalue = 1.5"), Cell::Float(2.0));
    assert_eq!(of("take = 'crossings'\nvalue = 2"), Cell::Float(2.0));
    assert_eq!(of("take = 'crossings'\nvalue = 9"), Cell::Float(0.0));
    assert_eq!(of("take = 'crossings'\nvalue = 1.5\nfrom = '1 s'"), Cell::Float(1.0));
}

#[test]
fn several_series_are_added() {
    let both = "name = 't'\nseries = ['x', 'y']\n";
    assert_eq!(value(&format!("{both}take = 'last'\nto = '2 s'")), Cell::Float(13.0));
    assert_eq!(value(&format!("{both}take = 'max'")), Cell::Float(13.0));
}

#[test]
fn a_series_less_another_crosses_zero_where_they_meet() {
    let less = "name = 't'\nseries = ['x']\nless = ['y']\n";
    assert_eq!(value(&format!("{less}take = 'min'")), Cell::Float(-10.0));
    assert_eq!(value(&format!("{less}take = 'crossings'\nvalue = 0")), Cell::Float(1.0));
}

#[test]
fn errors_say_what_is_wrong() {
    for (text, error) in [
        ("name = 't'", "either `sum` or `series`"),
        ("name = 't'\nseries = ['x']\ntake = 'median'", "say last, mean"),
        ("name = 't'\nseries = ['x']\ntake = 'first-at-least'", "needs a `value`"),
        ("name = 't'\nseries = ['x']\ntake = 'max'\nvalue = 1", "`value` goes with"),
        ("name = 't'\nseries = ['x']\ntake = 'max'\nfrom = '2'", "not a duration"),
        ("name = 't'\nsum = ['x']\ntimes = 3", "unknown field `times`"),
    ] {
        let found = derive(text).unwrap_err();
        assert!(found.contains(error), "{text}: {found}");
    }
}

#![allow(missing_docs, clippy::all)]
use manypath_sim::TraceTo;
use manypath_sim::scenario::{RunOptions, Scenario};
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let mut s = Scenario::load(&a[0]).unwrap();
    let mut trace = None;
    let mut fields = vec!["goodput_bps".to_owned()];
    let mut seeds = s.seeds();
    let mut i = 1;
    while i < a.len() {
        match a[i].as_str() {
            "--trace" => trace = Some(a[i + 1].clone()),
            "--fields" => fields = a[i + 1].split(',').map(str::to_owned).collect(),
            "--seeds" => seeds = (1..=a[i + 1].parse().unwrap()).collect(),
            "--set" => {
                let (k, v) = a[i + 1].split_once('=').unwrap();
                s.set(k, v).unwrap_or_else(|e| panic!("{e}"));
                seeds = if k == "seeds" { s.seeds() } else { seeds };
            }
            x => panic!("{x}"),
        }
        i += 2;
    }
    for p in s.points().unwrap_or_else(|e| panic!("{e}")) {
        for &seed in &seeds {
            let c = &p.run;
            let o = RunOptions {
                is_lean: true,
                trace: trace
                    .as_ref()
                    .map(|t| TraceTo { json_lines: Some(t.into()), pcapng_dir: None }),
                ..RunOptions::default()
            };
            let t = std::time::Instant::now();
            let r = c.run(seed, &o).unwrap_or_else(|e| panic!("{e}"));
            let v = serde_json::to_value(&r.result).unwrap();
            let out: Vec<String> = fields
                .iter()
                .map(|f| {
                    let mut x = &v;
                    for part in f.split('.') {
                        x = match part.parse::<usize>() {
                            Ok(n) => &x[n],
                            Err(_) => &x[part],
                        };
                    }
                    format!("{f}={x}")
                })
                .collect();
            println!(
                "{:?} seed={seed} {} ({:.1}s)",
                v["parameters"],
                out.join(" "),
                t.elapsed().as_secs_f64()
            );
        }
    }
}

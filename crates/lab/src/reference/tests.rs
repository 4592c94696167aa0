use std::sync::Arc;

use super::*;
use crate::cell::{Cell, Fields};

const FILE: &str = "loss,field,mean,std,n,source
1 %,t,10,1,30,made up
2 %,t,20,2,30,made up
3 %,t,30,,30,made up
9 %,t,90,1,30,made up
";

#[test]
fn what_is_only_shown_does_not_count() {
    let text = "loss,field,mean,std,n,source,compare\n1 %,t,99,1,30,x,no\n1 %,t,10,1,30,x,yes\n";
    let (compared, missing) = compare(&load(text).unwrap(), &table(&[("1 %", 10.0)]));
    assert_eq!((compared.len(), compared[0].agrees, missing), (1, true, 0));
}

fn load(text: &str) -> Result<Reference, LabError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reference.csv");
    std::fs::write(&path, text).unwrap();
    Reference::load(&path)
}

fn table(means: &[(&str, f64)]) -> Table {
    let mut table = Table::new();
    for (loss, mean) in means {
        let params = Arc::new(vec![("loss".to_owned(), (*loss).to_owned())]);
        for seed in 1..=3 {
            let value = Cell::Float(mean + seed as f64 - 2.0);
            let fields = Fields::from_iter([("t".to_owned(), value)]);
            table.push(&Arc::from(SCENARIO), &params, seed, fields);
        }
    }
    table
}

#[test]
fn means_agree_within_five_percent_or_inside_the_interval() {
    // The interval of the first is 10 +- 0.373, of the second 20 +- 0.747; 5 % are 0.5 and 1.
    let table = table(&[("1%", 10.49), ("2 %", 21.01), ("3 %", 28.4)]);
    let (compared, missing) = compare(&load(FILE).unwrap(), &table);
    let verdicts: Vec<_> = compared.iter().map(|a| a.agrees).collect();
    assert_eq!(verdicts, [true, false, false]);
    assert_eq!(missing, 1);
    assert!((compared[0].ratio.unwrap() - 1.049).abs() < 1e-9);
    assert!(compared[0].p.is_some() && compared[2].p.is_none());
}

#[test]
fn a_wide_interval_of_the_reference_counts() {
    let reference = load("loss,field,mean,std,n,source\n1 %,t,10,4,4,made up\n").unwrap();
    assert!(compare(&reference, &table(&[("1 %", 16.0)])).0[0].agrees);
    assert!(!compare(&reference, &table(&[("1 %", 17.0)])).0[0].agrees);
}

#[test]
fn a_line_is_compared_with_the_variant_it_names() {
    let text = "variant,loss,field,mean,std,n,source\n,1 %,t,10,1,30,x\nother,1 %,t,20,1,30,x\n";
    let mut table = table(&[]);
    for (variant, value) in [(SCENARIO, 5.0), (PACKAGED, 10.0), ("other", 20.0)] {
        let params = Arc::new(vec![("loss".to_owned(), "1 %".to_owned())]);
        let fields = Fields::from_iter([("t".to_owned(), Cell::Float(value))]);
        table.push(&Arc::from(variant), &params, 1, fields);
    }
    let (compared, missing) = compare(&load(text).unwrap(), &table);
    let agreeing: Vec<_> = compared.iter().map(|a| (a.variant.as_str(), a.agrees)).collect();
    assert_eq!((agreeing, missing), (vec![(PACKAGED, true), ("other", true)], 0));
}

#[test]
fn errors_name_the_line() {
    let error = load("loss,field,mean,std,n,source\n1 %,t,ten,,3,x\n").unwrap_err().to_string();
    assert!(error.contains("reference.csv:2: `ten` in column `mean`"), "{error}");
    let twice = "loss,field,mean,std,n,source\n1 %,t,1,,3,x\n2 %,t,1,,3,x\n1 %,t,1,,3,x\n";
    let error = load(twice).unwrap_err().to_string();
    assert!(error.contains("reference.csv:4: a second mean of `t`"), "{error}");
    let error = load("loss,field,mean,std,n,source\n1 %,t,1,,0,x\n").unwrap_err().to_string();
    assert!(error.contains("reference.csv:2: a mean of no runs"), "{error}");
    let error = load("loss,field,mean,n,source\n").unwrap_err().to_string();
    assert!(error.contains("no column `std`"), "{error}");
}

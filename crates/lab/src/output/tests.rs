use parquet::file::reader::{FileReader, SerializedFileReader};

use super::*;

const RESULTS: [&str; 3] = [
    r#"{"preset":"cmt","completed":true,"bytes":8000,"transfer_time_s":1.5,"first_byte_s":null,
        "paths":[{"local":"10.0.1.1:9899","data_chunks_sent":6,"t3_in_a_row":[4,1],"state_changes":[{"at_s":1.0,"to":"PF"}]},
                 {"local":"10.0.2.1:9899","data_chunks_sent":2,"state_changes":[]}]}"#,
    r#"{"preset":"cmt","completed":false,"bytes":0,"transfer_time_s":0.25,"first_byte_s":0.1,"paths":[]}"#,
    r#"{"preset":"a \"quoted\", name","completed":true,"bytes":1,"transfer_time_s":2,"first_byte_s":null,"paths":[]}"#,
];

fn table() -> Table {
    let mut table = Table::new();
    let variant = Arc::from("scenario");
    for (number, result) in RESULTS.iter().enumerate() {
        let params = Arc::new(vec![("path.2.loss".to_owned(), format!("{number} %"))]);
        table.push(&variant, &params, number as u64 + 1, fields_of_json(result).unwrap());
    }
    table
}

#[test]
fn columns_come_in_the_order_of_the_result_and_paths_are_numbered() {
    let fields: Vec<_> = table().fields().map(str::to_owned).collect();
    let expected = [
        "preset",
        "completed",
        "bytes",
        "transfer_time_s",
        "first_byte_s",
        "path1_local",
        "path1_data_chunks_sent",
        "path1_t3_in_a_row_1",
        "path1_t3_in_a_row_2",
        "path1_state_changes",
        "path2_local",
        "path2_data_chunks_sent",
        "path2_state_changes",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn json_lines_read_back_as_the_same_table() {
    let table = table();
    let mut out = Vec::new();
    for row in table.rows() {
        write_json_line(&mut out, "some-id", &table, row).unwrap();
    }
    let text = String::from_utf8(out).unwrap();
    let first = text.lines().next().unwrap();
    assert!(first.starts_with(
        r#"{"experiment":"some-id","variant":"scenario","path.2.loss":"0 %","seed":1,"#
    ));
    assert!(first.contains(r#""path1_state_changes":[{"at_s":1.0,"to":"PF"}]"#), "{first}");
    let back = read_json_lines(&text, &["path.2.loss".to_owned()]).unwrap();
    assert_eq!(back, table);
    let error = read_json_lines("{}\n", &[]).unwrap_err();
    assert!(error.starts_with("line 1: "), "{error}");
}

#[test]
fn csv_reads_back_with_quotes_and_nothing_for_null() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    write_csv(&path, "some-id", &table()).unwrap();
    let mut reader = csv::Reader::from_path(&path).unwrap();
    let column = |name: &str| {
        let mut reader = csv::Reader::from_path(&path).unwrap();
        let at = reader.headers().unwrap().iter().position(|h| h == name).unwrap();
        let records: Vec<_> = reader.records().map(|r| r.unwrap()[at].to_owned()).collect();
        records
    };
    assert_eq!(reader.records().count(), 3);
    assert_eq!(column("preset"), ["cmt", "cmt", "a \"quoted\", name"]);
    assert_eq!(column("first_byte_s"), ["", "0.1", ""]);
    assert_eq!(column("transfer_time_s"), ["1.5", "0.25", "2"]);
    assert_eq!(column("path2_data_chunks_sent"), ["2", "", ""]);
}

#[test]
fn parquet_reads_back_with_types_and_nulls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.parquet");
    write_parquet(&path, "some-id", &table()).unwrap();
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let types: Vec<_> = reader
        .metadata()
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .map(|c| (c.name().to_owned(), c.physical_type()))
        .collect();
    let kind = |name: &str| types.iter().find(|(n, _)| n == name).unwrap().1;
    assert_eq!(kind("path.2.loss"), Physical::BYTE_ARRAY);
    assert_eq!(kind("seed"), Physical::INT64);
    assert_eq!(kind("completed"), Physical::BOOLEAN);
    assert_eq!(kind("transfer_time_s"), Physical::DOUBLE, "whole and other numbers together");
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(|r| r.unwrap().to_string()).collect();
    assert_eq!(rows.len(), 3);
    assert!(rows[0].contains("path.2.loss: \"0 %\", seed: 1, preset: \"cmt\", completed: true"));
    assert!(rows[1].contains("transfer_time_s: 0.25, first_byte_s: 0.1, path1_local: null"));
}

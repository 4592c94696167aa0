//! The README's program is the example `hello`, which is built with the tests.

const README: &str = include_str!("../../../README.md");
const HELLO: &str = include_str!("../examples/hello.rs");

/// The README's blocks of code in `language`.
fn blocks(language: &str) -> Vec<&'static str> {
    let begin = format!("```{language}\n");
    let after = README.split(begin.as_str()).skip(1);
    after.map(|rest| rest.split_once("```").expect("the block ends").0).collect()
}

#[test]
fn the_program_of_the_readme_is_one_that_is_built() {
    let docs_end = HELLO.find("\n\n").expect("the docs of the example end");
    assert_eq!(blocks("rust"), [&HELLO[docs_end + 2..]], "copy examples/hello.rs to the README");
}

#[test]
fn the_readme_names_the_dependencies() {
    let lines = concat!(
        "[dependencies]\n",
        "manypath = { git = \"",
        env!("CARGO_PKG_REPOSITORY"),
        "\" }\n",
        "tokio = { version = \"1\", features = [\"macros\", \"rt\"] }\n",
    );
    assert!(blocks("toml").contains(&lines), "{lines}");
}

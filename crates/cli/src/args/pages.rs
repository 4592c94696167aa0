//! The commands that the pages show: each is one that this program understands.

use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;

use super::Cli;

/// Words after which the command of a shell is over.
const ENDS: [&str; 6] = ["|", "||", "&&", "&", ";", "…"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages in Markdown of the repository's folders that show commands.
fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in [".", "docs", "examples", "python", "bench", "bench/paths", "experiments"] {
        let entries = std::fs::read_dir(root().join(folder)).expect("a folder");
        let paths = entries.map(|entry| entry.expect("readable").path());
        // Old entries of the list of changes name what was there then.
        found.extend(paths.filter(|path| {
            path.extension().is_some_and(|ext| ext == "md") && !path.ends_with("CHANGELOG.md")
        }));
    }
    found
}

/// Languages of fenced blocks that have commands; others have output and programs.
const SHELLS: [&str; 4] = ["", "sh", "bash", "console"];
/// Words that stand for something, and something that they may stand for.
const PLACEHOLDERS: [(&str, &str); 7] = [
    ("IP", "192.0.2.1"),
    ("RANK", "backup"),
    ("PID", "1"),
    ("SHELL", "bash"),
    ("I/N", "1/2"),
    ("N", "2"),
    ("COMMAND", "send"),
];

/// A command of a page, with the line that it begins on.
#[derive(Debug, PartialEq)]
struct Shown {
    line: usize,
    words: Vec<String>,
    /// Named in a sentence, where arguments may be left out.
    in_prose: bool,
}

/// Lines of a page that belong together: code, or prose.
#[derive(Debug, Default)]
struct Block<'a> {
    is_code: bool,
    lines: Vec<(usize, &'a str)>,
}

/// The blocks of a page, without those of other languages.
fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut found = vec![Block::default()];
    let mut fence: Option<&str> = None;
    for (number, line) in page.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            let begins = fence.is_none();
            fence = begins.then(|| language.split(' ').next().unwrap_or_default());
            found.push(Block { is_code: begins, lines: Vec::new() });
            continue;
        }
        if fence.is_some_and(|language| !SHELLS.contains(&language)) {
            continue;
        }
        let is_code = fence.is_some() || line.starts_with("    ");
        if found.last().is_none_or(|block| block.is_code != is_code) {
            found.push(Block { is_code, lines: Vec::new() });
        }
        found.last_mut().expect("one at least").lines.push((number, line));
    }
    found
}

/// The commands of a page: in its blocks of code, and in the backticks of its sentences.
fn commands(page: &str) -> Vec<Shown> {
    let mut found = Vec::new();
    for block in blocks(page) {
        let texts = if block.is_code { lines_of_code(&block) } else { quoted(&block) };
        for (line, text) in texts {
            if let Some(words) = command(&text, !block.is_code) {
                found.push(Shown { line, words, in_prose: !block.is_code });
            }
        }
    }
    found
}

/// The texts in backticks.
fn quoted(block: &Block<'_>) -> Vec<(usize, String)> {
    let parts = |line: &str| line.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    block
        .lines
        .iter()
        .flat_map(|(number, line)| {
            let parts: Vec<String> = parts(line);
            parts.into_iter().map(|part| (*number, part))
        })
        .collect()
}

/// The lines of a block, continued ones joined. If some have a prompt, the others are output.
fn lines_of_code(block: &Block<'_>) -> Vec<(usize, String)> {
    let has_prompt =
        |line: &str| line.trim_start().split(' ').next().is_some_and(|w| w.ends_with('$'));
    let only_prompts = block.lines.iter().any(|(_, line)| has_prompt(line));
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in &block.lines {
        let text = line.trim_end_matches('\\');
        if goes_on && let Some((_, before)) = found.last_mut() {
            before.push_str(text);
        } else if !only_prompts || has_prompt(line) {
            found.push((*number, text.to_owned()));
        }
        goes_on = line.ends_with('\\');
    }
    found
}

/// `text` with the options that may be left out, without the values that may be left out, and of
/// alternatives with the first: `[--long[=TIME] | --short]` is `--long`.
fn in_full(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some((before, value)) = text.split_once("[=") {
        let Some((_, behind)) = value.split_once(']') else { break };
        text = format!("{before}{behind}");
    }
    let mut done = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('[') {
        let Some((inner, behind)) = after.split_once(']') else { break };
        let is_optional = inner.starts_with('-') || inner.starts_with(|c: char| c.is_uppercase());
        done += before;
        if is_optional && !inner.ends_with(':') {
            done += inner.split(" | ").next().unwrap_or(inner);
        } else {
            done += &format!("[{inner}]");
        }
        rest = behind;
    }
    done + rest
}

/// The words of the manypath command in a line of a shell, if there is one.
fn command(text: &str, in_prose: bool) -> Option<Vec<String>> {
    let words = shlex::split(&in_full(text))?;
    let is_program = |word: &String| {
        let name = word.rsplit('/').next().unwrap_or(word);
        // Of a container, the image is the program.
        name == "manypath" || word.starts_with("manypath:0")
    };
    let first = words.iter().position(is_program)?;
    let runners = ["sudo", "podman", "time", "nohup"];
    let is_run = words[..first].iter().enumerate().all(|(n, word)| {
        word.ends_with('$') || word.contains('=') || n > 0 || runners.contains(&word.as_str())
    });
    if !is_run || in_prose && first > 0 {
        return None;
    }
    let is_over = |word: &&String| {
        !ENDS.contains(&word.as_str()) && !word.starts_with(['>', '<']) && !word.starts_with("2>")
    };
    let words = words[first + 1..].iter().take_while(is_over).map(|word| {
        let known = PLACEHOLDERS.iter().find(|(placeholder, _)| placeholder == word);
        known.map_or(word.as_str(), |(_, value)| value).to_owned()
    });
    let words: Vec<String> = std::iter::once("manypath".to_owned()).chain(words).collect();
    (words.len() > 1).then_some(words)
}

fn is_option(word: &str) -> bool {
    word.starts_with('-')
}

/// The reason why the program does not understand a command.
fn refusal(shown: &Shown) -> Option<String> {
    let error = Cli::try_parse_from(&shown.words).err()?;
    let is_fine = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => shown.in_prose,
        // An option is named without its value.
        ErrorKind::InvalidValue => {
            shown.in_prose && shown.words.last().is_some_and(|word| is_option(word))
        }
        _ => false,
    };
    (!is_fine).then(|| error.to_string())
}

#[test]
fn the_program_understands_every_command_of_the_pages() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in pages() {
        let page = std::fs::read_to_string(&path).expect("a page");
        for shown in commands(&page) {
            count += 1;
            if let Some(why) = refusal(&shown) {
                let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
                wrong.push(format!("{name}:{}: {:?}\n{why}", shown.line, shown.words.join(" ")));
            }
        }
    }
    assert!(count > 100, "only {count} commands found");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn commands_are_found_and_wrong_ones_refused() {
    let page = "Run `manypath sim` or `other manypath x`; `manypath send --bnid a`.\n\n\
                ```sh\nsudo manypath recv --dir 'a b' | tee log   # a note\nmanypath perf client \\\n  \
                --nothing host\n```\n\n    desk$ FOO=1 manypath send a manypath2:… > log\n    \
                manypath: done\n\nor\n\n    manypath send\n    podman run -v a:b manypath:0.1.0 paths \
                [--via A,…] DEST\n    manypath relay [--user A:B | --users C] --listen [::1]\n    manypath doctor [--long[=TIME]] [DEST]\n\n\
                ```text\nmanypath lost\n```\n";
    let found = commands(page);
    let texts: Vec<_> = found.iter().map(|shown| shown.words.join(" ")).collect();
    assert_eq!(
        texts,
        [
            "manypath sim",
            "manypath send --bnid a",
            "manypath recv --dir a b",
            "manypath perf client --nothing host",
            "manypath send a manypath2:…",
            "manypath send",
            "manypath paths --via A,… DEST",
            "manypath relay --user A:B --listen [::1]",
            "manypath doctor --long DEST",
        ]
    );
    let refused: Vec<_> = found.iter().map(|shown| refusal(shown).is_some()).collect();
    assert_eq!(refused, [false, true, false, true, false, true, false, false, false]);
    assert_eq!(found[3].line, 5);
}

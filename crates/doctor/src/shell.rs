//! Words of command lines that users paste.

/// A text as one word of a shell, for commands that are shown to be pasted: as it is if a shell
/// takes it as it is, else in quotes. Names of interfaces may have a `;` or a `$`, which a shell
/// would obey. Control characters are written as escapes (`$'\x1b'`, as bash, zsh and POSIX of 2024
/// read them), so that a terminal does not obey them.
pub fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if text.chars().any(char::is_control) {
        return format!("$'{}'", text.chars().map(escaped).collect::<String>());
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A character within `$'…'`.
fn escaped(c: char) -> String {
    let mut bytes = [0; 4];
    match c {
        '\'' | '\\' => format!("\\{c}"),
        // Of three octal digits, so that no digit behind it can belong to it.
        c if c.is_control() => {
            c.encode_utf8(&mut bytes).bytes().map(|byte| format!("\\{byte:03o}")).collect()
        }
        c => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn usual_words_stay_as_they_are() {
        for word in ["eth0", "wlp3s0f0", "br-lan.7", "eth0,wlan0", "/home/a/key.pem", "10.1.0.0/24"]
        {
            assert_eq!(quoted(word), word);
        }
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("~"), "'~'");
        assert_eq!(quoted("\u{1b}7'"), r"$'\0337\''");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_shell_reads_the_word_that_was_meant() {
        let odd = [
            "", "a;b", "$(id)", "`id`", "it's", "\"", "\\", "a b", "~", "*", "#", "&", "!", "ä",
            "-",
        ];
        let control = ["\u{1b}[2J1", "a\nb", "a\t'\\", "\u{85}7"];
        let shells = [("sh", &odd[..]), ("bash", &odd[..]), ("bash", &control[..])];
        for (shell, words) in shells {
            for word in words {
                let line = format!("printf %s {}", quoted(word));
                let Ok(output) = Command::new(shell).args(["-c", &line]).output() else { continue };
                assert_eq!(String::from_utf8_lossy(&output.stdout), *word, "{shell}: {line}");
            }
        }
    }
}

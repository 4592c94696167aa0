//! QR codes in the terminal (`--qr`).

use std::io::IsTerminal;

use console::Term;
use qrcode::types::Color;
use qrcode::{EcLevel, QrCode};

use crate::failure::{Failure, Result};
use crate::screen::Screen;

/// Light modules around a code (ISO/IEC 18004, section 5.3.8).
const QUIET: usize = 4;
/// Black on white, of the colours that themes do not change: scanners want dark on light, whatever
/// the terminal's background is.
const BLACK_ON_WHITE: &str = "\x1b[38;5;16;48;5;231m";
const RESET: &str = "\x1b[0m";

/// A QR code as rows of modules, the quiet zone included.
#[derive(Debug)]
struct Picture {
    dark: Vec<bool>,
    width: usize,
}

impl Picture {
    /// The smallest code of this text, with the highest level of error correction at this size.
    fn new(text: &str) -> Result<Picture> {
        let too_long = |_| Failure::usage("--qr: the text is too long for a QR code");
        let least = QrCode::with_error_correction_level(text, EcLevel::L).map_err(too_long)?;
        let better = [EcLevel::H, EcLevel::Q, EcLevel::M].into_iter();
        let code = better
            .filter_map(|level| QrCode::with_version(text, least.version(), level).ok())
            .next()
            .unwrap_or(least);
        let inner = code.width();
        let width = inner + 2 * QUIET;
        let mut dark = vec![false; width * width];
        for (index, colour) in code.to_colors().into_iter().enumerate() {
            let (row, column) = (index / inner + QUIET, index % inner + QUIET);
            dark[row * width + column] = colour == Color::Dark;
        }
        Ok(Picture { dark, width })
    }

    fn is_dark(&self, row: usize, column: usize) -> bool {
        // A code has an odd number of rows, the last line only half of them.
        row < self.width && self.dark[row * self.width + column]
    }

    /// Lines of text, each with two rows of modules; with colours or as dark blocks.
    fn lines(&self, has_colours: bool) -> Vec<String> {
        let rows = (0..self.width).step_by(2);
        let line = |row| {
            let columns = 0..self.width;
            let blocks = columns.map(|c| match (self.is_dark(row, c), self.is_dark(row + 1, c)) {
                (false, false) => ' ',
                (true, false) => '▀',
                (false, true) => '▄',
                (true, true) => '█',
            });
            let blocks: String = blocks.collect();
            if has_colours { format!("{BLACK_ON_WHITE}{blocks}{RESET}") } else { blocks }
        };
        rows.map(line).collect()
    }
}

/// Shows a ticket as a QR code on standard error, if the terminal has room for it.
pub(crate) fn show_ticket(ticket: &str, screen: &Screen) -> Result<()> {
    // Upper case makes it smaller, and is the same ticket.
    show(&ticket.to_uppercase(), screen, "name fewer addresses with --listen")
}

/// Shows a text as a QR code. `shorter` says how to have a smaller one.
pub(crate) fn show(text: &str, screen: &Screen, shorter: &str) -> Result<()> {
    let picture = Picture::new(text)?;
    let is_terminal = std::io::stderr().is_terminal();
    let size = is_terminal.then(|| Term::stderr().size_checked()).flatten();
    if let Some(why) = too_narrow(&picture, size) {
        screen.line(&format!("No QR code: {why}; widen the window, or {shorter}"));
        return Ok(());
    }
    let lines = picture.lines(is_terminal);
    // Not as messages, which show control characters instead of obeying them.
    for line in &lines {
        eprintln!("{line}");
    }
    if let Some((rows, _)) = size
        && usize::from(rows) <= lines.len()
    {
        screen.line(&format!("The QR code is {} lines high: enlarge the window", lines.len()));
    }
    Ok(())
}

/// The reason why a terminal with these rows and columns cannot show the picture.
fn too_narrow(picture: &Picture, size: Option<(u16, u16)>) -> Option<String> {
    let (_, columns) = size?;
    (usize::from(columns) < picture.width)
        .then(|| format!("it needs {} columns, and the terminal has {columns}", picture.width))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use manypath_files::ticket::{Ticket, Trust};
    use manypath_trust::Fingerprint;

    use super::*;

    fn ticket(addresses: usize, token: usize) -> String {
        let addresses: Vec<IpAddr> = (0..addresses as u16)
            .map(|i| {
                if i < 2 {
                    [192, 0, 2, i as u8].into()
                } else {
                    [0x2001, i, 0, 0, 0, 0, 0, 1].into()
                }
            })
            .collect();
        let trust = Trust::Key(Fingerprint::of(b"key"));
        let relayed = Vec::new();
        Ticket { addresses, port: 9899, relayed, token: vec![0x5a; token].into(), trust }
            .to_string()
    }

    #[test]
    fn a_usual_ticket_fits_into_a_small_terminal() {
        let picture = Picture::new(&ticket(2, 16).to_uppercase()).unwrap();
        let lines = picture.lines(false);
        assert!(picture.width <= 80 && lines.len() <= 23, "{} lines", lines.len());
        assert!(lines.iter().all(|line| line.chars().count() == picture.width));
        let lower = Picture::new(&ticket(2, 16)).unwrap();
        assert!(lower.width > picture.width, "upper case is smaller");
    }

    #[test]
    fn the_longest_ticket_has_a_code_and_says_what_it_needs() {
        let picture = Picture::new(&ticket(32, 255).to_uppercase()).unwrap();
        assert_eq!(too_narrow(&picture, None), None);
        assert_eq!(too_narrow(&picture, Some((24, 500))), None);
        let why = too_narrow(&picture, Some((24, 80))).unwrap();
        assert!(why.contains(&format!("needs {} columns", picture.width)), "{why}");
        assert!(Picture::new(&"A".repeat(5000)).is_err());
    }

    #[test]
    fn a_quiet_zone_surrounds_the_code_and_colours_are_reset() {
        let picture = Picture::new("MANYPATH").unwrap();
        let lines = picture.lines(false);
        let blank = " ".repeat(picture.width);
        assert!(lines[..2].iter().all(|line| *line == blank));
        assert!(lines.iter().all(|line| line.starts_with("    ") && line.ends_with("    ")));
        // The corner of a finder pattern: dark, and dark below.
        assert!(lines[2].starts_with("    █▀▀▀▀▀█"), "{}", lines[2]);
        for line in picture.lines(true) {
            assert!(line.starts_with(BLACK_ON_WHITE) && line.ends_with(RESET));
        }
    }
}

//! Losses of packets by their number, as somebody counted them on a real path.

use std::fmt;
use std::str::FromStr;

/// Which of the packets that enter a link are lost.
///
/// ```
/// use manypath_sim::LostPackets;
///
/// // The 3rd and 7th of each 10.
/// let lost: LostPackets = "3, 7 of 10".parse()?;
/// assert_eq!(lost.to_string(), "3, 7 of 10");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostPackets {
    /// Numbers of packets, from 1, ascending.
    numbers: Vec<u64>,
    /// After this number of packets they count from 1 again.
    of: u64,
}

impl LostPackets {
    /// Loses the packets with these numbers, which count from 1, of each `of` packets.
    pub fn new(mut numbers: Vec<u64>, of: u64) -> LostPackets {
        numbers.sort_unstable();
        numbers.dedup();
        numbers.retain(|number| (1..=of).contains(number));
        LostPackets { numbers, of }
    }

    /// True if some packets are lost.
    pub fn is_possible(&self) -> bool {
        !self.numbers.is_empty()
    }
}

impl fmt::Display for LostPackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.numbers.is_empty() {
            return f.write_str("none");
        }
        let numbers: Vec<String> = self.numbers.iter().map(u64::to_string).collect();
        write!(f, "{} of {}", numbers.join(", "), self.of)
    }
}

impl FromStr for LostPackets {
    type Err = String;

    fn from_str(text: &str) -> Result<LostPackets, String> {
        if text.trim() == "none" {
            return Ok(LostPackets::default());
        }
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| text.trim().to_owned());
        let (numbers, of) = text.rsplit_once(" of ").ok_or_else(|| text.to_owned())?;
        let of = number(of)?;
        let numbers = numbers.split(',').map(number).collect::<Result<Vec<u64>, String>>()?;
        match numbers.iter().find(|number| !(1..=of).contains(*number)) {
            Some(beyond) => Err(beyond.to_string()),
            None => Ok(LostPackets::new(numbers, of)),
        }
    }
}

/// Counts the packets that enter.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    packets: u64,
    lost: usize,
}

impl Counted {
    /// Counts a packet; true if it is lost.
    pub(super) fn loses(&mut self, which: &LostPackets) -> bool {
        self.packets += 1;
        let is_lost = which.numbers.get(self.lost) == Some(&self.packets);
        self.lost += usize::from(is_lost);
        if self.packets == which.of {
            *self = Counted::default();
        }
        is_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_packets_of_each_round_are_lost() {
        let (which, mut counted) = (LostPackets::new(vec![4, 1, 1, 9], 4), Counted::default());
        let lost: Vec<u64> = (1..=8).filter(|_| counted.loses(&which)).collect();
        assert_eq!(lost, [1, 4, 5, 8]);
    }

    #[test]
    fn texts_are_read_and_wrong_ones_refused() {
        assert_eq!("none".parse(), Ok(LostPackets::default()));
        assert_eq!("2,1 of 5".parse(), Ok(LostPackets::new(vec![1, 2], 5)));
        for (text, wrong) in [("3", "3"), ("3 of x", "x"), ("0 of 4", "0"), ("1, 5 of 4", "5")] {
            assert_eq!(text.parse::<LostPackets>(), Err(wrong.to_owned()));
        }
    }
}

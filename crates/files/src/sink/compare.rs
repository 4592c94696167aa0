//! Reads what the receiver has of a file that is announced.

use std::io;

use sha2::{Digest, Sha256};

use crate::disk::DiskFile;
use crate::frame::{BEGINNINGS_MAX, Beginning, WORKING_AFTER};

/// Bytes read at a time.
const READ: usize = 1 << 18;
/// The length of each beginning is a multiple of this, except that of the longest.
const STEP: u64 = 1 << 20;

/// A beginning, and the state of the digest at its end.
pub(super) type Known = (u64, Sha256);

/// The beginnings of the first `length` bytes of a file, the shortest first. `working` is called
/// now and then.
pub(super) fn beginnings(
    file: &mut impl DiskFile,
    length: u64,
    mut working: impl FnMut(),
) -> io::Result<Vec<Known>> {
    let step = length.div_ceil(BEGINNINGS_MAX as u64).max(1).next_multiple_of(STEP);
    let mut buffer = vec![0; READ];
    let (mut sha256, mut read, mut known) = (Sha256::new(), 0, Vec::new());
    while read < length {
        let wanted = (length - read).min((READ as u64).min(step - read % step)) as usize;
        match file.read(&mut buffer[..wanted]) {
            Ok(0) => break,
            Ok(n) => {
                sha256.update(&buffer[..n]);
                if (read + n as u64) / WORKING_AFTER > read / WORKING_AFTER {
                    working();
                }
                read += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        if read % step == 0 && read < length {
            known.push((read, sha256.clone()));
        }
    }
    if known.last().is_none_or(|(longest, _)| *longest < read) {
        known.push((read, sha256));
    }
    Ok(known)
}

/// The same as the sender hears of them.
pub(super) fn told(known: &[Known]) -> Vec<Beginning> {
    let told = known.iter().map(|(length, sha256)| Beginning {
        length: *length,
        sha256: sha256.clone().finalize().into(),
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::SystemDisk;
    use crate::disk::Disk;

    #[test]
    fn beginnings_are_few_and_end_with_all_there_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let content: Vec<u8> = (0..40 * STEP + 7).map(|i| (i / 1000) as u8).collect();
        std::fs::File::create(&path).unwrap().write_all(&content).unwrap();
        for (length, lengths) in [
            (0, vec![0]),
            (5, vec![5]),
            (STEP, vec![STEP]),
            (STEP + 1, vec![STEP, STEP + 1]),
            (40 * STEP + 7, (1..=20).map(|i| 2 * i * STEP).chain([40 * STEP + 7]).collect()),
        ] {
            let mut file = SystemDisk.open(&path).unwrap();
            let known = beginnings(&mut file, length, || {}).unwrap();
            let told = told(&known);
            assert_eq!(told.iter().map(|b| b.length).collect::<Vec<_>>(), lengths);
            for Beginning { length, sha256 } in told {
                assert_eq!(sha256, <[u8; 32]>::from(Sha256::digest(&content[..length as usize])));
            }
        }
        let mut file = SystemDisk.open(&path).unwrap();
        file.seek(40 * STEP).unwrap();
        assert_eq!(told(&beginnings(&mut file, 99, || {}).unwrap())[0].length, 7, "it is shorter");
    }
}

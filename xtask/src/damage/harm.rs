//! What is done to files.

use std::path::Path;

use super::content::files;
use crate::error::{Result, err};
use crate::random::Random;

/// What was done, and to which file.
pub struct Harm {
    pub what: String,
    pub file: String,
    /// A message may also name this one, which has the damaged one's content or place.
    pub other: Option<String>,
    /// Whether bytes at the end are gone.
    pub is_cut: bool,
}

/// Flips bytes of one file, cuts it, overwrites a part of it, replaces it by another one, copies it or removes it.
pub fn harm(folder: &Path, random: &mut Random) -> Result<Harm> {
    let names = files(folder)?;
    let name = random.pick(&names).clone();
    let path = folder.join(&name);
    let mut bytes = std::fs::read(&path)?;
    if bytes.is_empty() {
        return Err(err!("{name} is empty"));
    }
    let length = bytes.len();
    let mut harm = Harm { what: String::new(), file: name.clone(), other: None, is_cut: false };
    match random.below(10) {
        0..4 => {
            let count = 1 + random.below(3);
            for _ in 0..count {
                flip(&mut bytes, random);
            }
            harm.what = format!("{count} bytes of {name} ({length} bytes) flipped");
            std::fs::write(&path, bytes)?;
        }
        4 => {
            let at = random.below(length as u64) as usize;
            let end = (at + 1 + random.below(8_000) as usize).min(length);
            bytes[at..end].fill(0);
            harm.what = format!("bytes {at} to {end} of {name} ({length} bytes) zeroed");
            std::fs::write(&path, bytes)?;
        }
        5..7 => {
            let at = random.below(length as u64);
            harm.what = format!("{name} cut from {length} to {at} bytes");
            harm.is_cut = true;
            std::fs::File::options().write(true).open(&path)?.set_len(at)?;
        }
        7 => {
            let other = random.pick(&names).clone();
            harm.what = format!("{other} copied over {name}");
            harm.is_cut = true;
            let content = if other == name { Vec::new() } else { std::fs::read(folder.join(&other))? };
            std::fs::write(&path, content)?;
            harm.other = Some(other);
        }
        8 => {
            // A copy under a name of its own, as a careless restore leaves it.
            let (stem, end) = name.rsplit_once('.').unwrap_or((&name, "log"));
            let number = u64::from_str_radix(stem, 16).unwrap_or(1) + 1 + random.below(50);
            let copy = format!("{number:016x}.{end}");
            harm.what = format!("{name} copied to {copy}");
            harm.is_cut = names.contains(&copy);
            std::fs::copy(&path, folder.join(&copy))?;
            harm.other = Some(copy);
        }
        _ => {
            harm.what = format!("{name} removed");
            harm.is_cut = true;
            std::fs::remove_file(&path)?;
            // A gap in the log shows in the segment beside it.
            harm.other = name.ends_with(".log").then(|| ".log".to_owned());
        }
    }
    Ok(harm)
}

/// Changes one byte, to anything but what it was.
pub fn flip(bytes: &mut [u8], random: &mut Random) {
    let at = random.below(bytes.len() as u64) as usize;
    bytes[at] ^= 1 + random.below(255) as u8;
}

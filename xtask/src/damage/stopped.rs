//! One file of a stopped server is damaged; then the server is started.

use super::Verdict;
use super::content::{DOCUMENTS, Original, check_log, data, read};
use super::harm::{Harm, harm};
use crate::error::{Result, err};
use crate::process::{Build, Espalier, Server};
use crate::random::Random;

/// Documents of the last commands of a killed server, which no later one has confirmed to be on disk.
const UNCONFIRMED: i64 = 400;

pub fn trial(build: Build, original: &Original, random: &mut Random) -> Result<(Verdict, String)> {
    let folder = original.copy()?;
    let harm = harm(&data(&folder), random)?;
    let state = if original.is_clean { "stopped" } else { "killed" };
    let what = format!("{state} server, {}", harm.what);
    let server = match Espalier::start(build, folder) {
        Ok(server) => server,
        Err(error) => {
            check_log(&error.0)?;
            if !names(&error.0, &harm) || !error.0.contains("cannot be opened") {
                return Err(err!("{what}: the refusal does not say why: {error}"));
            }
            let said = error.0.lines().last().unwrap_or_default().to_owned();
            return Ok((Verdict::Refused, format!("{what}: refused: {said}")));
        }
    };
    let verdict = serve(&server, original, &harm).map_err(|error| err!("{what}: {error}\n{}", server.log()))?;
    check_log(&server.log())?;
    let word = match verdict {
        Verdict::Refused | Verdict::FailedReads => "reads of what is damaged are refused",
        Verdict::Unharmed => "every document is there",
        Verdict::Torn => "the last writes are cut off",
    };
    Ok((verdict, format!("{what}: {word}")))
}

fn serve(server: &Espalier, original: &Original, harm: &Harm) -> Result<Verdict> {
    let mut client = server.connect()?;
    let mut verdict = Verdict::Unharmed;
    for hint in ["$natural", "reverse_1"] {
        let reading = read(&mut client, hint)?;
        if let Some(error) = &reading.error {
            if !names(error, harm) {
                return Err(err!("the error does not name the file: {error}"));
            }
            verdict = Verdict::FailedReads;
            continue;
        }
        let count = reading.found.len() as i64;
        if count == DOCUMENTS {
            continue;
        }
        let is_prefix = reading.found.keys().copied().eq(0..count);
        let is_tail = harm.file.ends_with(".log") && (harm.is_cut || count >= DOCUMENTS - UNCONFIRMED);
        if original.is_clean || !is_prefix || !is_tail {
            return Err(err!("{} documents are missing without a word, read by {hint}", DOCUMENTS - count));
        }
        verdict = Verdict::Torn;
    }
    Ok(verdict)
}

fn names(message: &str, harm: &Harm) -> bool {
    message.contains(&harm.file) || harm.other.as_ref().is_some_and(|other| message.contains(other.as_str()))
}

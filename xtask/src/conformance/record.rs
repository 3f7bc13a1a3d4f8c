//! `cargo xtask record`: the reference mongod's answers, written into the files.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::compare::difference;
use super::differences::Differences;
use super::file::TestFile;
use super::files;
use super::runner::Runner;
use crate::error::{Context, Error, Result};
use crate::fetch::MONGOD_VERSION;
use crate::process::{Mongod, Server, TemporaryFolder, Topology};
use crate::shell::print_wrapped;

/// Records the named files, or all.
pub fn record(mut arguments: lexopt::Parser) -> Result<()> {
    use lexopt::prelude::*;
    let (mut paths, mut port) = (Vec::new(), None);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("port") => port = Some(arguments.value()?.parse::<u16>()?),
            Value(path) => paths.push(PathBuf::from(path)),
            other => return Err(other.unexpected().into()),
        }
    }
    let selected = files::select(&paths)?;
    // Read first: a mistake in a file is reported before a server is started.
    let parsed: Vec<TestFile> = selected.iter().map(|path| files::read(path)).collect::<Result<_>>()?;
    let server = match port {
        Some(_) => None,
        None => Some(Mongod::start(Topology::ReplicaSet, TemporaryFolder::in_memory("record")?)?),
    };
    let port = port.or(server.as_ref().map(Server::port)).unwrap_or_default();
    let started = Instant::now();
    let mut runner = Runner::new(port)?;
    let (mut cases, mut failed) = (0, 0);
    for (path, mut file) in selected.iter().zip(parsed) {
        cases += file.cases.len();
        failed += record_file(&mut runner, path, &mut file)?;
    }
    runner.finish()?;
    let seconds = started.elapsed().as_secs_f64();
    println!("{} cases recorded in {} files, {failed} failed, {seconds:.1} s", cases - failed, selected.len());
    if failed == 0 { Ok(()) } else { Err(Error::reported()) }
}

/// Records one file and says how many cases failed; those keep what they had.
fn record_file(runner: &mut Runner, path: &Path, file: &mut TestFile) -> Result<usize> {
    let name = files::name(path);
    let before = file.print();
    let mut failed = 0;
    for case in &mut file.cases {
        // Twice, because an answer that differs from one run to the next must not become an expectation.
        let answers = runner.run(case).and_then(|first| Ok((first, runner.run(case)?)));
        let problem = match answers {
            Err(error) => error.0,
            Ok((first, second)) => match difference(&first, &second, &case.directives) {
                Some(report) => format!("two runs answered differently:\n{report}"),
                None => {
                    let texts: Vec<String> = first.iter().map(print_wrapped).collect();
                    case.set_output("", texts.join("\n"));
                    continue;
                }
            },
        };
        failed += 1;
        eprintln!("{}:{} {}\n  {problem}", name.display(), case.line, case.title);
    }
    let mark = format!("# recorded from MongoDB {MONGOD_VERSION}");
    file.header.retain(|line| !line.starts_with("# recorded from MongoDB"));
    file.header.push(mark);
    let after = file.print();
    let on_disk = std::fs::read_to_string(path).unwrap_or_default();
    if after != before || after != on_disk {
        std::fs::write(path, after).context(path.display())?;
    }
    Differences::refresh(&name, file)?;
    Ok(failed)
}

//! `cargo xtask replay`: Espalier's answers against what was recorded.

use std::path::{Path, PathBuf};

use super::case::Case;
use super::compare::difference;
use super::differences::Differences;
use super::files;
use super::runner::Runner;
use crate::error::{Error, Result, err};
use crate::process::{Against, Build, Espalier, Mongod, Server, TemporaryFolder, Topology};

/// How a replay went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    pub passed: usize,
    pub failed: usize,
}

/// Replays the named files, or all.
pub fn replay(mut arguments: lexopt::Parser) -> Result<()> {
    use lexopt::prelude::*;
    let (mut paths, mut port, mut build, mut against) = (Vec::new(), None, Build::Debug, Against::Espalier);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("port") => port = Some(arguments.value()?.parse::<u16>()?),
            Long("release") => build = Build::Release,
            Long("against") => against = arguments.value()?.parse()?,
            Value(path) => paths.push(PathBuf::from(path)),
            other => return Err(other.unexpected().into()),
        }
    }
    let server: Option<Box<dyn Server>> = match (port, against) {
        (Some(_), _) => None,
        (None, Against::Espalier) => Some(Box::new(Espalier::start(build, TemporaryFolder::in_memory("replay")?)?)),
        (None, Against::Mongod) => {
            Some(Box::new(Mongod::start(Topology::ReplicaSet, TemporaryFolder::in_memory("replay")?)?))
        }
    };
    let port = port.or(server.as_ref().map(|server| server.port())).unwrap_or_default();
    let summary = replay_on(port, against, &paths)?;
    println!("{} passed, {} failed", summary.passed, summary.failed);
    if summary.failed == 0 { Ok(()) } else { Err(Error::reported()) }
}

/// Replays on a running server and prints what differs.
pub fn replay_on(port: u16, against: Against, paths: &[PathBuf]) -> Result<Summary> {
    let mut runner = Runner::new(port)?;
    let mut summary = Summary::default();
    for path in files::select(paths)? {
        replay_file(&mut runner, against, &path, &mut summary)?;
    }
    if paths.is_empty() {
        report_lost_differences(&mut summary)?;
    }
    runner.finish()?;
    Ok(summary)
}

fn replay_file(runner: &mut Runner, against: Against, path: &Path, summary: &mut Summary) -> Result<()> {
    let name = files::name(path);
    let file = files::read(path)?;
    let differences = match against {
        Against::Espalier => Differences::of(&name)?,
        Against::Mongod => Differences::default(),
    };
    for case in &file.cases {
        match check(runner, case, &differences) {
            Ok(None) => summary.passed += 1,
            Ok(Some(report)) => {
                summary.failed += 1;
                println!("{}:{} {}\n{report}", name.display(), case.line, case.title);
            }
            Err(error) => {
                summary.failed += 1;
                println!("{}:{} {}\n  {error}\n", name.display(), case.line, case.title);
            }
        }
    }
    for title in differences.orphans(&file) {
        summary.failed += 1;
        println!("differences/{}: there is no case `{title}`\n", name.display());
    }
    Ok(())
}

fn check(runner: &mut Runner, case: &Case, differences: &Differences) -> Result<Option<String>> {
    let recorded = case.output("")?;
    if recorded.len() != case.recorded_commands().count() {
        return Err(err!("not every command has a recorded output; run `cargo xtask record`"));
    }
    let expected = differences.expected(case)?.unwrap_or(recorded);
    let actual = runner.run(case)?;
    Ok(difference(&expected, &actual, &case.directives))
}

/// A file of differences without a file of cases would never be looked at.
fn report_lost_differences(summary: &mut Summary) -> Result<()> {
    let folder = files::differences_folder();
    if !folder.exists() {
        return Ok(());
    }
    let mut left = vec![folder.clone()];
    while let Some(path) = left.pop() {
        for entry in std::fs::read_dir(&path)? {
            let entry = entry?.path();
            if entry.is_dir() {
                left.push(entry);
                continue;
            }
            let Ok(name) = entry.strip_prefix(&folder) else { continue };
            if !files::folder().join(name).exists() {
                summary.failed += 1;
                println!("differences/{}: there is no conformance/{}\n", name.display(), name.display());
            }
        }
    }
    Ok(())
}

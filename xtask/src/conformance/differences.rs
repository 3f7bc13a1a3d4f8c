//! Where Espalier deliberately answers otherwise: `conformance/differences/<same path>.test`.
//!
//! A difference names the case by its title, gives the reason, and shows both answers. It must be alive: the case must
//! exist, MongoDB's answer must be the recorded one, and Espalier's must differ from it.

use std::path::Path;

use bson::Bson;

use super::case::Case;
use super::compare::difference;
use super::file::TestFile;
use super::files;
use crate::error::{Context, Result, err};

/// The differences of one conformance file.
#[derive(Default)]
pub struct Differences(TestFile);

impl Differences {
    /// Those of the conformance file of this name, if it has any.
    pub fn of(name: &Path) -> Result<Differences> {
        let path = files::differences_folder().join(name);
        if path.exists() { Ok(Differences(files::read(&path)?)) } else { Ok(Differences::default()) }
    }

    /// What Espalier is expected to answer, if it differs from MongoDB here.
    pub fn expected(&self, case: &Case) -> Result<Option<Vec<Bson>>> {
        let Some(entry) = self.0.cases.iter().find(|entry| entry.title == case.title) else { return Ok(None) };
        let context = "in its file of differences";
        if entry.directives.reason.is_empty() {
            return Err(err!("{context}: `# reason: …` is missing"));
        }
        let (mongodb, espalier) =
            (entry.output("mongodb").context(context)?, entry.output("espalier").context(context)?);
        if difference(&case.output("")?, &mongodb, &case.directives).is_some() {
            return Err(err!("{context}: `--- mongodb` is not what is recorded; run `cargo xtask record`"));
        }
        if difference(&mongodb, &espalier, &case.directives).is_none() {
            return Err(err!("{context}: the two outputs are the same answer"));
        }
        Ok(Some(espalier))
    }

    /// Titles that no case of the file has.
    pub fn orphans(&self, file: &TestFile) -> Vec<&str> {
        let known = |title: &str| file.cases.iter().any(|case| case.title == title);
        self.0.cases.iter().map(|entry| entry.title.as_str()).filter(|title| !known(title)).collect()
    }

    /// Puts what was recorded from MongoDB into the file of differences, which people write without it.
    pub fn refresh(name: &Path, file: &TestFile) -> Result<()> {
        let path = files::differences_folder().join(name);
        if !path.exists() {
            return Ok(());
        }
        let mut differences = files::read(&path)?;
        for entry in &mut differences.cases {
            let Some(case) = file.cases.iter().find(|case| case.title == entry.title) else { continue };
            let Some((_, recorded)) = case.outputs.iter().find(|(name, _)| name.is_empty()) else { continue };
            entry.set_output("mongodb", recorded.clone());
            // MongoDB's answer stands above ours, whatever order they were written in.
            entry.outputs.sort_by_key(|(name, _)| name != "mongodb");
        }
        std::fs::write(&path, differences.print()).context(path.display())
    }
}

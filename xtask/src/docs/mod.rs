//! `cargo xtask docs`: pages generated out of the code, so that they cannot say anything else.

#[cfg(feature = "docs")]
mod compatibility;
#[cfg(feature = "docs")]
mod limits;
#[cfg(feature = "docs")]
mod privileges;

use crate::error::Result;

/// `cargo xtask docs [--check]`.
pub fn run(mut arguments: lexopt::Parser) -> Result<()> {
    use lexopt::prelude::*;
    let mut check = false;
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("check") => check = true,
            other => return Err(other.unexpected().into()),
        }
    }
    generate(check)
}

#[cfg(feature = "docs")]
fn generate(check: bool) -> Result<()> {
    use crate::error::{Context, err};

    let pages = [
        ("docs/compatibility.md", compatibility::page()),
        ("docs/limits.md", limits::page()),
        ("docs/privileges.md", privileges::page()),
    ];
    std::fs::create_dir_all(crate::root().join("docs"))?;
    for (name, page) in pages {
        let path = crate::root().join(name);
        if !check {
            std::fs::write(&path, page).context(path.display())?;
        } else if std::fs::read_to_string(&path).context(path.display())? != page {
            return Err(err!("{name} is not what the code says; run `cargo xtask docs`"));
        }
    }
    Ok(())
}

/// Without the registries: the same command by a build that has them.
#[cfg(not(feature = "docs"))]
fn generate(check: bool) -> Result<()> {
    let status = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["run", "--quiet", "--package", "xtask", "--features", "docs", "--", "docs"])
        .args(check.then_some("--check"))
        .current_dir(crate::root())
        .status()?;
    if status.success() { Ok(()) } else { Err(crate::error::err!("the pages were not written")) }
}

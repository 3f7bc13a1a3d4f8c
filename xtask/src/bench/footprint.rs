//! What a server takes besides time per operation: memory, disk, and time to start and to come back.

use std::path::Path;
use std::time::{Duration, Instant};

use bson::doc;

use super::Options;
use crate::error::{Context, Result};
use crate::process::{Killable, Mongod, TemporaryFolder};

/// An empty server: idle memory and the time from start to the first ping.
pub fn empty(options: &Options, servers: &[&dyn Killable]) -> Result<()> {
    std::thread::sleep(Duration::from_secs(1));
    for server in servers {
        println!("{}: idle memory {:.1} MiB", server.name(), resident_mib(server.process_id())?);
    }
    let folder = || TemporaryFolder::on_disk("bench-start");
    let started = Instant::now();
    drop(Mongod::start(options.topology, folder()?)?);
    println!("mongod: start on an empty folder to the first ping {:.2} s", started.elapsed().as_secs_f64());
    let started = Instant::now();
    drop(super::start_subject(options)?);
    println!("the other: start on an empty folder to the first ping {:.2} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// A server with the large collection: disk, memory, and the time from kill -9 to the first ping.
pub fn loaded(server: &mut dyn Killable) -> Result<()> {
    // A checkpoint where the server has the command, so that the log does not count twice.
    server.connect()?.run("admin", &doc! { "fsync": 1 })?;
    let disk = disk_usage(server.folder().path())?;
    println!(
        "{}: large collection with its indexes on disk {:.0} MiB, and {:.0} MiB of log",
        server.name(),
        disk.data as f64 / 1_048_576.0,
        disk.log as f64 / 1_048_576.0
    );
    println!("{}: memory after loading {:.1} MiB", server.name(), resident_mib(server.process_id())?);
    // Writes that no checkpoint has seen, as there are in any real crash.
    let update = doc! { "update": super::data::BIG, "updates": [{ "q": { "_id": { "$lt": 1000 } }, "u": { "$inc": { "n": 1i64 } }, "multi": true }] };
    server.connect()?.must(super::DB, &update)?;
    server.kill();
    let started = Instant::now();
    server.restart()?;
    println!("{}: kill -9 to the first ping {:.2} s", server.name(), started.elapsed().as_secs_f64());
    Ok(())
}

fn resident_mib(process: u32) -> Result<f64> {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(&path).context(&path)?;
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kib.unwrap_or(0.0) / 1024.0)
}

/// What the files of a folder take on disk, which is less than their length where they have holes.
#[derive(Default)]
struct Disk {
    data: u64,
    /// Write-ahead logs, which have a fixed size whatever the data.
    log: u64,
}

fn disk_usage(folder: &Path) -> Result<Disk> {
    use std::os::unix::fs::MetadataExt;
    let mut usage = Disk::default();
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(&folder).context(folder.display())? {
            let path = entry?.path();
            let metadata = path.metadata()?;
            if metadata.is_dir() {
                left.push(path);
                continue;
            }
            let name =
                path.strip_prefix(folder.parent().unwrap_or(&folder)).unwrap_or(&path).to_string_lossy().into_owned();
            let is_log = name.contains("journal") || name.contains("log");
            *(if is_log { &mut usage.log } else { &mut usage.data }) += metadata.blocks() * 512;
        }
    }
    Ok(usage)
}

//! `getDiagnosticData`: what monitoring asks for in one go: `serverStatus`, `replSetGetStatus`, and the machine's figures.
//! MongoDB answers with its latest sample; here it is taken when it is asked for.

use super::prelude::*;
use super::{repl_set_get_status, server_status};
use crate::clock;
use crate::reply::DocWriter;

pub(super) static COMMAND: Command = Command {
    name: "getDiagnosticData",
    doc: "Returns the server's and the machine's figures.",
    privilege: Privilege::Cluster(&[Action::ServerStatus, Action::ReplSetGetStatus]),
    place: Place::Admin,
    run: get_diagnostic_data,
    ..Command::BASE
};

fn get_diagnostic_data(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("getDiagnosticData")?;
    let data = crate::reply::build(|doc| {
        doc.append_date("start", clock::now_ms());
        timed("serverStatus", doc, |doc| server_status::write_all(call, doc));
        timed("replSetGetStatus", doc, |doc| repl_set_get_status::write(call, doc));
        timed("systemMetrics", doc, write_machine);
        doc.append_date("end", clock::now_ms());
    });
    call.reply.append("data", &data);
    Ok(())
}

/// A part, with when it was begun and done.
fn timed(name: &str, doc: &mut DocWriter<'_>, write: impl FnOnce(&mut DocWriter<'_>)) {
    let mut part = doc.doc(name);
    part.append_date("start", clock::now_ms());
    write(&mut part);
    part.append_date("end", clock::now_ms());
}

/// What the system tells about itself, with the names of the kernel. Nothing where it does not.
fn write_machine(doc: &mut DocWriter<'_>) {
    /// In which the kernel counts, in milliseconds.
    const TICK_MS: u64 = 10;
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    {
        let mut cpu = doc.doc("cpu");
        cpu.append("num_cpus", std::thread::available_parallelism().map_or(1, usize::from) as i32);
        let total = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
        let names = ["user_ms", "nice_ms", "system_ms", "idle_ms", "iowait_ms", "irq_ms", "softirq_ms", "steal_ms"];
        for (name, ticks) in names.into_iter().zip(total.split_whitespace()) {
            cpu.append_long(name, ticks.parse::<u64>().unwrap_or(0).saturating_mul(TICK_MS));
        }
        for (name, line) in [("ctxt", "ctxt "), ("btime", "btime "), ("procs_running", "procs_running ")] {
            if let Some(value) = stat.lines().find_map(|text| text.strip_prefix(line)?.trim().parse().ok()) {
                cpu.append_long(name, value);
            }
        }
    }
    let mut memory = doc.doc("memory");
    let lines = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let wanted = [
        "MemTotal",
        "MemFree",
        "MemAvailable",
        "Buffers",
        "Cached",
        "SwapTotal",
        "SwapFree",
        "Active",
        "Inactive",
        "Dirty",
    ];
    for name in wanted {
        let line = lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        if let Some(kb) = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()) {
            memory.append_long(&format!("{name}_kb"), kb);
        }
    }
}

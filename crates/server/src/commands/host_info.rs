//! `hostInfo`: the machine the server runs on.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "hostInfo",
    doc: "Describes the machine the server runs on.",
    privilege: Privilege::Cluster(&[Action::HostInfo]),
    run: host_info,
    ..Command::BASE
};

fn host_info(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("hostInfo")?;
    let memory_mb = total_memory_kb().unwrap_or(0) / 1024;
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as i32;
    let now = call.now_ms;
    let host = super::server_status::host_name(call.server);
    {
        let mut system = call.reply.doc("system");
        system.append_date("currentTime", now).append("hostname", &host);
        system.append("cpuAddrSize", usize::BITS as i32);
        system.append_long("memSizeMB", memory_mb).append_long("memLimitMB", memory_mb);
        system.append("numCores", cores).append("cpuArch", std::env::consts::ARCH).append("numaEnabled", false);
    }
    let os = if cfg!(target_os = "linux") { "Linux" } else { std::env::consts::OS };
    let version = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    call.reply.doc("os").append("type", os).append("name", os).append("version", version.trim());
    call.reply.doc("extra");
    Ok(())
}

fn total_memory_kb() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

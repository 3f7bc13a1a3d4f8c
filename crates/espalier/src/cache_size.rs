//! How much memory the block cache gets when nobody says.

/// What a cache has at least.
const CACHE_BYTES_MIN: u64 = 256 << 20;
/// Its share of the memory: the operating system keeps the compressed files in what is left.
const CACHE_SHARE: u64 = 4;

/// The default size of the cache on this machine. It is an upper bound: the cache grows with what is read.
pub fn default_cache_bytes() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| total_bytes(&text));
    // A container sees its own limit here, in one of two versions.
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let container = limits.iter().find_map(|path| read(path)?.trim().parse::<u64>().ok());
    cache_bytes([machine, container].into_iter().flatten().min())
}

fn cache_bytes(memory_bytes: Option<u64>) -> u64 {
    memory_bytes.map_or(CACHE_BYTES_MIN, |bytes| (bytes / CACHE_SHARE).max(CACHE_BYTES_MIN))
}

/// `MemTotal` of `/proc/meminfo`.
fn total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_memory_and_never_less_than_the_minimum() {
        assert_eq!(cache_bytes(Some(16 << 30)), 4 << 30);
        assert_eq!(cache_bytes(Some(512 << 20)), CACHE_BYTES_MIN);
        assert_eq!(cache_bytes(None), CACHE_BYTES_MIN);
        assert!(default_cache_bytes() >= CACHE_BYTES_MIN);
    }

    #[test]
    fn meminfo_is_read() {
        assert_eq!(total_bytes("MemTotal:       24681472 kB\nMemFree: 1 kB\n"), Some(24_681_472 * 1024));
        assert_eq!(total_bytes("MemTotal: lots\n"), None);
        assert_eq!(total_bytes(""), None);
    }
}

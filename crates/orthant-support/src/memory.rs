//! What the system grants of memory, where it tells.

use std::fs;
use std::path::Path;

/// Part of the address space that may be left out of account: stacks of threads, libraries, fragments.
const SLACK: u64 = 64 << 20;

/// Memory that this process can still have, in bytes: what is free on the machine, within the limits of its control
/// group and of its address space (`ulimit -v`).
pub fn available() -> Option<u64> {
    [free(), group_v2(), group_v1(), address_space()].into_iter().flatten().min()
}

/// Largest resident size of this process so far, in bytes.
pub fn peak() -> Option<u64> {
    field("/proc/self/status", "VmHWM:")
}

fn free() -> Option<u64> {
    field("/proc/meminfo", "MemAvailable:")
}

/// What a line such as `Max address space  123456  unlimited  bytes` leaves beside what is in use.
fn address_space() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    // `unlimited` is no number.
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    let used = field("/proc/self/status", "VmSize:").unwrap_or(0);
    Some(limit.saturating_sub(used + SLACK))
}

/// The tightest limit of the groups that this process is in, version 2.
fn group_v2() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    within(Path::new("/sys/fs/cgroup"), path, "memory.max", "memory.current")
}

/// The same of version 1.
fn group_v1() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|c| c == "memory").then_some(path)
    })?;
    let root = Path::new("/sys/fs/cgroup/memory");
    within(root, path, "memory.limit_in_bytes", "memory.usage_in_bytes")
}

/// What is left to a group and to those around it.
fn within(root: &Path, path: &str, limit: &str, used: &str) -> Option<u64> {
    let number = |file: &Path| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let group = root.join(path.trim_start_matches('/'));
    // In a container the path may be that outside of it; then the root is the group.
    let group = if group.is_dir() { group } else { root.to_owned() };
    group
        .ancestors()
        .take_while(|folder| folder.starts_with(root))
        .filter_map(|folder| {
            // `max` is no number.
            let limit = number(&folder.join(limit))?;
            let used = number(&folder.join(used)).unwrap_or(0);
            // Cached files make room when it is needed.
            let cached = statistic(&folder.join("memory.stat"), "inactive_file").unwrap_or(0);
            Some(limit.saturating_sub(used.saturating_sub(cached)))
        })
        .min()
}

/// A line such as `inactive_file 1234` of the statistics of a group.
fn statistic(file: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

/// A line such as `VmHWM:   1234 kB` of a file of the Linux kernel.
fn field(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_as_tight_as_the_tightest_around_them() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let write = |folder: &Path, limit: &str, used: &str| {
            fs::write(folder.join("memory.max"), limit).unwrap();
            fs::write(folder.join("memory.current"), used).unwrap();
        };
        let left = |path| within(root.path(), path, "memory.max", "memory.current");
        assert_eq!(left("/a/b"), None);
        write(&inner, "max\n", "5\n");
        assert_eq!(left("/a/b"), None);
        write(inner.parent().unwrap(), "1000\n", "300\n");
        assert_eq!(left("/a/b"), Some(700));
        fs::write(root.path().join("a/memory.stat"), "anon 7\ninactive_file 200\n").unwrap();
        assert_eq!(left("/a/b"), Some(900));
        write(&inner, "400\n", "500\n");
        assert_eq!(left("/a/b"), Some(0));
        // The path of the host, inside of a container.
        write(root.path(), "90\n", "10\n");
        assert_eq!(left("/docker/0123"), Some(80));
    }
}

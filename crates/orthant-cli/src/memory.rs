//! What the system tells about memory, where it tells.

/// Memory that can be had without swapping, in bytes.
pub(crate) fn available() -> Option<u64> {
    field("/proc/meminfo", "MemAvailable:")
}

/// Largest resident size of this process so far, in bytes.
pub(crate) fn peak() -> Option<u64> {
    field("/proc/self/status", "VmHWM:")
}

/// A line such as `VmHWM:   1234 kB` of a file of the Linux kernel.
fn field(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

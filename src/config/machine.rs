use std::fs;
use std::path::{Path, PathBuf};

/// Number of bytes of memory to assume if the system does not report its memory.
const MEMORY_BYTES_DEFAULT: u64 = 4 << 30;

/// Returns how many bytes of memory the process can use: the memory of the machine or, if lower, the limit of the
/// process's control groups (`cgroups(7)`).
pub(super) fn memory_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo");
    let machine = machine.ok().and_then(|text| mem_total(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&groups).into_iter();
    let limits = limits.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok());
    limits
        .chain([machine.unwrap_or(MEMORY_BYTES_DEFAULT)])
        .min()
        .unwrap_or(MEMORY_BYTES_DEFAULT)
}

/// Parses the line `MemTotal: 16384000 kB` (proc(5)) into bytes.
fn mem_total(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1_024)
}

/// Returns the files that may contain a memory limit for a process. `groups` has lines such as `0::/path` (cgroups
/// version 2) and `7:memory:/path` (version 1).
///
/// Includes the files of all parent cgroups, because a cgroup also limits its children. In a container, `groups` may
/// contain the path on the host. The container's limit is then in the root directory of the cgroup file system. If no
/// limit is set, a file contains a word instead of a number, or a number larger than the memory of any machine.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, name) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max")
        } else if controllers.split(',').any(|each| each == "memory") {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        } else {
            continue;
        };
        let path = Path::new(path.trim_start_matches('/'));
        let groups = path.ancestors();
        files.extend(groups.map(|group| Path::new(root).join(group).join(name)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_machine_is_read() {
        let meminfo = "MemTotal:       16384 kB\nMemFree:        1 kB\n";
        assert_eq!(mem_total(meminfo), Some(16_777_216));
        assert_eq!(mem_total("MemFree: 1 kB\n"), None);
        assert!(memory_bytes() > 0);
    }

    #[test]
    fn every_cgroup_of_the_process_can_limit_its_memory() {
        let files = |groups| {
            let files = limit_files(groups).into_iter();
            files
                .map(|file| file.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };

        assert_eq!(
            files("0::/a.slice/b\n"),
            [
                "/sys/fs/cgroup/a.slice/b/memory.max",
                "/sys/fs/cgroup/a.slice/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
        assert_eq!(
            files("3:cpu:/x\n2:hugetlb,memory:/docker\n"),
            [
                "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            ]
        );
        assert!(files("nonsense\n").is_empty());
    }
}

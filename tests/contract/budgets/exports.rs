use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use crate::budgets::{MB, builder};
use crate::support::paths::{program, scratch};
use crate::support::server::{API_SECRET, Backend, Server};

const THREADS: usize = 3_000;
const STATE_BYTES: usize = 20_000;
/// Maximum memory growth of a process. Includes the threads that a few connections transfer at the same time, and
/// memory that the allocator has not returned.
const GROWTH_BYTES: u64 = 24 * MB;

fn server() -> Server {
    builder(Backend::Redis).start()
}

async fn fill(server: &Server) {
    let client = server.client();
    let state = format!("\"{}\"", "x".repeat(STATE_BYTES));
    stream::iter(0..THREADS)
        .for_each_concurrent(16, |_| async {
            client.thread().put("state/k", &state).ok().await;
        })
        .await;
}

fn path(name: &str) -> PathBuf {
    let name = format!("budget-{}-{name}", std::process::id());
    scratch().join(name)
}

async fn peak_bytes(server: &Server, command: &str, input: Option<&Path>, output: &Path) -> u64 {
    let mut child = Command::new(program());
    child
        .arg(command)
        .args(["--server", &format!("http://{}", server.address())])
        .env_clear()
        .env("THREADKEEP_API_KEY", API_SECRET)
        .stdin(input.map_or_else(Stdio::null, |path| File::open(path).unwrap().into()))
        .stdout(File::create(output).unwrap());
    let mut child = child.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        peak = peak.max(kilobytes.unwrap_or(0) * 1_024);
        if let Some(ended) = child.try_wait().unwrap() {
            assert!(ended.success());
            return peak;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn assert_small_growth(subject: &str, before: u64, after: u64) {
    let grown = after.saturating_sub(before);
    assert!(grown < GROWTH_BYTES, "{subject} grew by {grown} bytes");
}

#[tokio::test]
async fn exports_and_imports_use_little_memory_on_both_sides() {
    let (from, to) = (server(), server());
    let (small, large, report) = (path("small"), path("large"), path("report"));
    from.client().thread().put("state/k", "1").ok().await;
    let export_small = peak_bytes(&from, "export", None, &small).await;
    let import_small = peak_bytes(&to, "import", Some(&small), &report).await;
    fill(&from).await;
    let before = (from.peak_bytes(), to.peak_bytes());

    let export_large = peak_bytes(&from, "export", None, &large).await;
    let moved = fs::metadata(&large).unwrap().len();
    assert!(moved > (THREADS * STATE_BYTES) as u64, "{moved}");
    assert_small_growth("the command that exports", export_small, export_large);
    assert_small_growth("the server that exports", before.0, from.peak_bytes());

    let text = fs::read(&large).unwrap();
    // skip the short line, because the target already has its thread
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let rest: Vec<u8> = lines
        .filter(|line| line.len() > STATE_BYTES)
        .flatten()
        .copied()
        .collect();
    fs::write(&large, rest).unwrap();
    let import_large = peak_bytes(&to, "import", Some(&large), &report).await;
    assert_small_growth("the command that imports", import_small, import_large);
    assert_small_growth("the server that imports", before.1, to.peak_bytes());
    assert!(
        fs::read_to_string(&report)
            .unwrap()
            .starts_with(&format!("imported       {THREADS}\n"))
    );
    for file in [small, large, report] {
        fs::remove_file(file).unwrap();
    }
}

//! The program under test.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::server::Server;

/// What a run of the load test has come to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) report: Value,
    pub(crate) page: String,
}

/// Runs the load test for some seconds. Its report goes into a directory of that name.
pub(crate) fn load(server: &Server, name: &str, flags: &[&str]) -> Outcome {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = Command::new(env!("CARGO_BIN_EXE_threadkeep-load"))
        .env_clear()
        .args(["--host", &server.url(), "--users", "12", "--seconds", "3"])
        // a machine that is busy for some seconds is no fault
        .args(["--timeout-ms", "30000"])
        .arg("--report")
        .arg(&directory)
        .args(flags)
        .output()
        .unwrap();
    let read = |file: &str| fs::read_to_string(directory.join(file)).unwrap();
    // shown if the test fails
    print!("{}", String::from_utf8_lossy(&output.stdout));
    Outcome {
        code: output.status.code().unwrap(),
        report: serde_json::from_str(&read("mixed.json")).unwrap(),
        page: read("mixed.html"),
    }
}

impl Outcome {
    /// A count of pushes.
    pub(crate) fn of_pushes(&self, count: &str) -> u64 {
        self.report["account"]["pushes"][count].as_u64().unwrap()
    }

    /// Requests of that name.
    pub(crate) fn requests(&self, name: &str) -> u64 {
        let rows = self.report["requests"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name);
        row.map_or(0, |row| row["requests"].as_u64().unwrap())
    }
}

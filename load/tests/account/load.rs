use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::server::Server;

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) report: Value,
    pub(crate) page: String,
}

/// Maximum duration of a run, in seconds. Most machines need only a few seconds to meet the conditions of the tests.
const SECONDS_MAX: u32 = 64;

/// Repeats the load test until `is_enough` returns true or a run lasts `SECONDS_MAX`. Each run lasts twice as long as
/// the previous one, for slow machines. Panics if any run except the last finds a fault.
pub(crate) fn load_until(
    server: &Server,
    scenario: &str,
    name: &str,
    flags: &[&str],
    is_enough: impl Fn(&Outcome) -> bool,
) -> Outcome {
    let mut seconds = 2;
    loop {
        let outcome = load(server, scenario, name, seconds, flags);
        if is_enough(&outcome) || seconds >= SECONDS_MAX {
            return outcome;
        }
        assert_eq!(outcome.code, 0, "{:?}", outcome.report["reasons"]);
        seconds *= 2;
    }
}

/// Runs a scenario for `seconds` seconds, and writes the report to the directory `name`.
fn load(server: &Server, scenario: &str, name: &str, seconds: u32, flags: &[&str]) -> Outcome {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = Command::new(env!("CARGO_BIN_EXE_threadkeep-load"))
        .env_clear()
        .args(["--host", &server.url(), "--users", "12"])
        .args(["--scenario", scenario, "--seconds", &seconds.to_string()])
        // a long timeout, so that the test does not fail if the machine is busy for a few seconds
        .args(["--timeout-ms", "30000"])
        .arg("--report")
        .arg(&directory)
        .args(flags)
        .output()
        .unwrap();
    let read = |kind: &str| {
        let file = directory.join(format!("{scenario}.{kind}"));
        fs::read_to_string(file).unwrap()
    };
    // the test harness shows this output only if the test fails
    print!("{}", String::from_utf8_lossy(&output.stdout));
    Outcome {
        code: output.status.code().unwrap(),
        report: serde_json::from_str(&read("json")).unwrap(),
        page: read("html"),
    }
}

impl Outcome {
    pub(crate) fn of_pushes(&self, count: &str) -> u64 {
        self.report["account"]["pushes"][count].as_u64().unwrap()
    }

    pub(crate) fn unanswered(&self, reason: &str) -> u64 {
        let unanswered = &self.report["account"]["unanswered"];
        unanswered[reason].as_u64().unwrap_or(0)
    }

    pub(crate) fn requests(&self, name: &str) -> u64 {
        let rows = self.report["requests"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name);
        row.map_or(0, |row| row["requests"].as_u64().unwrap())
    }
}

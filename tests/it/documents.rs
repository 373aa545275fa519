//! Documents that say the same as the program.

use std::fs;
use std::process::Command;

use threadkeep::config::Setting;

use crate::support::server::{Backend, Server};

fn committed(name: &str) -> String {
    fs::read_to_string(format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn the_committed_openapi_document_is_what_the_program_prints() {
    let output = Command::new(env!("CARGO_BIN_EXE_threadkeep"))
        .arg("openapi")
        .output()
        .unwrap();

    assert!(output.status.success());
    assert!(
        String::from_utf8(output.stdout).unwrap() == committed("openapi.json"),
        "run `cargo run -- openapi > openapi.json`"
    );
}

#[test]
fn the_readme_lists_every_setting_with_its_default() {
    let readme = committed("README.md");

    for setting in Setting::all() {
        let (name, default) = (setting.name, setting.default.trim_matches('"'));
        let row = match default {
            "" => format!("| `{name}` | |"),
            default => format!("| `{name}` | `{default}` |"),
        };
        assert!(readme.contains(&row), "{row}");
    }
}

#[tokio::test]
async fn every_metric_of_the_alerts_exists() {
    let server = Server::shared(Backend::Memory);
    // a family is shown when it has a first member
    server.client().get("/v1/threads/current").ok().await;
    let page = server.client().get("/metrics").ok().await.text();
    let alerts = committed("deploy/alerts.yml");

    let words = alerts.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let metrics: Vec<_> = words
        .filter(|word| word.starts_with("threadkeep_"))
        .collect();

    assert!(metrics.len() > 3);
    for metric in metrics {
        let family = metric.trim_end_matches("_total");
        assert!(page.contains(&format!("# TYPE {family} ")), "{metric}");
    }
}

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::server::{Backend, Server};
use threadkeep_domain::EventType;

fn committed(name: &str) -> String {
    fs::read_to_string(format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn committed_documents_match_the_output_of_the_program() {
    for (args, document) in [
        (&["openapi"][..], "openapi.json"),
        (&["settings", "--markdown"], "docs/settings.md"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_threadkeep"))
            .args(args)
            .output()
            .unwrap();

        assert!(output.status.success());
        assert!(
            String::from_utf8(output.stdout).unwrap() == committed(document),
            "run `cargo run -- {} > {document}`",
            args.join(" ")
        );
    }
}

#[test]
fn every_file_that_the_architecture_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = files_below(root, &["src", "crates", "tests", "deploy", "docs"]);
    // the pages omit `crates/` and `/src` from the paths of files in crates
    let files: Vec<_> = files
        .iter()
        .map(|file| match file.split_once("/crates/") {
            Some((before, file)) => format!("{before}/{}", file.replacen("/src/", "/", 1)),
            None => file.clone(),
        })
        .collect();
    let internals = files_below(root, &["docs/internals"]);
    let pages = internals
        .iter()
        .map(|path| fs::read_to_string(path).unwrap());
    let pages: Vec<_> = pages.chain([committed("ARCHITECTURE.md")]).collect();
    // code spans that look like file names
    let named = pages
        .iter()
        .flat_map(|page| page.split('`').skip(1).step_by(2));
    let named = named.filter(|name| {
        let kind = Path::new(name).extension().and_then(|kind| kind.to_str());
        let is_file = kind.is_some_and(|kind| ["rs", "lua", "toml", "json", "md"].contains(&kind));
        let is_folder = name.ends_with('/') && !name.starts_with('/');
        (is_folder || is_file) && !name.contains(['*', ' ', ':', '(', '{'])
    });
    let named: Vec<_> = named.collect();

    assert!(named.len() > 100);
    for name in named {
        let within = format!("/{name}");
        let exists = files.iter().any(|file| match name.ends_with('/') {
            true => file.contains(&within),
            false => file.ends_with(&within),
        });
        assert!(exists || root.join(name).exists(), "{name}");
    }
}

#[test]
fn rust_in_each_document_is_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiled = committed("src/lib.rs");
    let documents = files_below(root, &["docs"]);
    let documents = documents
        .iter()
        .map(|path| path.split_at(root.as_os_str().len() + 1).1);

    for name in documents.chain(["README.md", "ARCHITECTURE.md", "CHANGELOG.md"]) {
        let is_document = Path::new(name).extension().is_some_and(|kind| kind == "md");
        if is_document && committed(name).contains("```rust") {
            assert!(
                compiled.contains(&format!("include_str!(\"../{name}\")")),
                "{name}"
            );
        }
    }
}

#[test]
fn each_link_between_documents_resolves() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = files_below(root, &["docs", "deploy", "load", "benches"]);
    pages.extend(fs::read_dir(root).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        path.to_str().unwrap().to_owned()
    }));
    let is_page = |path: &str| Path::new(path).extension().is_some_and(|kind| kind == "md");
    // skip the pages of installed packages
    pages.retain(|path| is_page(path) && !path.contains("/target/"));
    let mut links = 0;
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        let targets = text
            .split("](")
            .skip(1)
            .map(|rest| rest.split(')').next().unwrap());
        for target in targets.filter(|target| !target.contains("://")) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = match path {
                "" => Path::new(page).to_owned(),
                path => Path::new(page).parent().unwrap().join(path),
            };
            assert!(path.exists(), "{target} in {page}");
            if !anchor.is_empty() {
                let headings = fs::read_to_string(&path).unwrap();
                let mut headings = headings.lines().filter(|line| line.starts_with('#'));
                assert!(
                    headings.any(|line| slug(line) == anchor),
                    "{target} in {page}"
                );
            }
            links += 1;
        }
    }
    assert!(links > 60, "{links}");
}

/// Returns the anchor of a heading by GitHub's rule.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let characters = text
        .chars()
        .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    characters.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn the_readme_is_short() {
    assert!(committed("README.md").lines().count() <= 180);
}

/// The README has a table that names a proof for each claim: a file, a module path, or the start of a test's name.
#[test]
fn each_proof_in_the_readme_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = files_below(root, &["tests/it", "tests/contract"]);
    let sources: Vec<_> = sources
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect();
    let readme = committed("README.md");
    let table = readme
        .split("| proof: ")
        .nth(1)
        .unwrap()
        .split("\n\n")
        .next()
        .unwrap();
    // skip the heading and the line below it
    let proofs: Vec<_> = table
        .lines()
        .skip(2)
        .map(|row| row.rsplit('`').nth(1).unwrap())
        .collect();

    assert!(proofs.len() > 10);
    for proof in proofs {
        let exists = match proof.strip_suffix("::") {
            Some(modules) => modules.split("::").all(|module| {
                sources
                    .iter()
                    .any(|text| text.contains(&format!("mod {module};")))
            }),
            None => {
                root.join(proof).exists()
                    || sources
                        .iter()
                        .any(|text| text.contains(&format!("fn {proof}")))
            }
        };
        assert!(exists, "{proof}");
    }
}

#[test]
fn each_example_is_on_the_front_page() {
    let page = committed("src/lib.rs");

    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|kind| kind == "rs") {
            assert!(page.contains(&format!("| `{name}` |")), "{name}");
        }
    }
}

fn files_below(root: &Path, folders: &[&str]) -> Vec<String> {
    let mut folders: Vec<_> = folders.iter().map(|folder| root.join(folder)).collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path.to_str().unwrap().to_owned()),
            }
        }
    }
    files
}

#[tokio::test]
async fn every_metric_of_the_alerts_exists() {
    let mut page = String::new();
    for backend in [Backend::Memory, Backend::Redis] {
        let server = Server::shared(backend);
        // a metric family is listed only after its first sample
        server.client().get("/v1/threads/current").ok().await;
        server.client().get("/v1/threads/none").send().await;
        page += &server.client().get("/metrics").ok().await.text();
    }
    let alerts = committed("deploy/alerts.yml");

    let words = alerts.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let metrics: Vec<_> = words
        .filter(|word| word.starts_with("threadkeep_"))
        .collect();

    assert!(metrics.len() > 3);
    for metric in metrics {
        let family = metric.trim_end_matches("_total").trim_end_matches("_info");
        assert!(page.contains(&format!("# TYPE {family} ")), "{metric}");
    }
}

#[test]
fn each_alert_is_tested_and_explained() {
    let (tests, pages) = (committed("tests/alerts.yml"), committed("docs/monitor.md"));
    let alerts = committed("deploy/alerts.yml");
    let alerts: Vec<_> = alerts.split("- alert: ").skip(1).collect();

    assert!(alerts.len() > 10);
    for alert in alerts {
        let name = alert.lines().next().unwrap();
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "{name}");
        assert!(pages.contains(&format!("| `{name}` |")), "{name}");
    }
}

struct MetricRow {
    kind: String,
    labels: BTreeSet<String>,
}

fn documented_metrics() -> BTreeMap<String, MetricRow> {
    let page = committed("docs/metrics.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let labels = cells[3].split('`').skip(1).step_by(2);
        let row = MetricRow {
            kind: cells[2].to_owned(),
            labels: labels.map(str::to_owned).collect(),
        };
        (cells[1].trim_matches('`').to_owned(), row)
    })
    .collect()
}

#[test]
fn the_metrics_page_has_every_metric_of_the_source() {
    // code that precedes the name of a metric
    const NAME_PREFIXES: [&str; 6] = [
        "encoder,",
        "register(",
        "register_with_unit(",
        "(name, help) = (",
        "gauge(",
        "encode_descriptor(",
    ];
    // metric names in the source omit these unit and type suffixes
    const NAME_SUFFIXES: [&str; 7] = [
        "",
        "_total",
        "_seconds",
        "_bytes",
        "_info",
        "_seconds_total",
        "_bytes_total",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut registered = BTreeSet::new();
    for file in files_below(root, &["src/telemetry"]) {
        let source = fs::read_to_string(file).unwrap();
        let mut pieces = source.split('"');
        while let (Some(code), Some(text)) = (pieces.next(), pieces.next()) {
            let code = code.trim_end();
            let is_name = text
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter == '_');
            if is_name && NAME_PREFIXES.iter().any(|before| code.ends_with(*before)) {
                registered.insert(text.to_owned());
            }
        }
    }
    let page = documented_metrics();
    let matches = |metric: &str, name: &str| {
        let metric = metric.strip_prefix("threadkeep_").unwrap_or(metric);
        let name = name.strip_prefix("threadkeep_").unwrap_or(name);
        let ending = metric.strip_prefix(name);
        ending.is_some_and(|ending| NAME_SUFFIXES.contains(&ending))
    };

    assert!(registered.len() > 60);
    for name in &registered {
        let is_described = page.keys().any(|metric| matches(metric, name));
        assert!(is_described, "{name} is not in docs/metrics.md");
    }
    for metric in page.keys() {
        let exists = registered.iter().any(|name| matches(metric, name));
        assert!(exists, "{metric} is not in src/telemetry");
    }
}

#[tokio::test]
async fn the_metrics_page_has_the_types_and_labels_of_a_running_server() {
    let rows = documented_metrics();
    for backend in [Backend::Memory, Backend::Redis] {
        let server = Server::shared(backend);
        // a metric family is listed only after its first sample
        server.client().get("/v1/threads/current").ok().await;
        server.client().get("/v1/threads/none").send().await;
        let page = server.client().get("/metrics").ok().await.text();

        let mut kinds = BTreeMap::new();
        for line in page.lines() {
            if let Some(line) = line.strip_prefix("# TYPE ") {
                let (family, kind) = line.split_once(' ').unwrap();
                let metric = match kind {
                    "counter" => format!("{family}_total"),
                    "info" => format!("{family}_info"),
                    _ => family.to_owned(),
                };
                let row = rows.get(&metric);
                let row = row.unwrap_or_else(|| panic!("{metric} is not in docs/metrics.md"));
                assert_eq!(row.kind, kind, "{metric}");
                kinds.insert(metric, kind);
            } else if !line.starts_with('#') {
                let name = line.split(['{', ' ']).next().unwrap();
                let histogram = ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|ending| name.strip_suffix(*ending))
                    .filter(|family| kinds.get(*family) == Some(&"histogram"));
                let metric = histogram.unwrap_or(name);
                // split at the quotes, label names and values alternate
                let (_, labels) = line.split_once('{').unwrap_or(("", ""));
                let labels: BTreeSet<_> = labels
                    .split('"')
                    .step_by(2)
                    .filter_map(|label| label.trim_start_matches(',').strip_suffix('='))
                    .filter(|label| *label != "le")
                    .map(str::to_owned)
                    .collect();
                assert_eq!(rows[metric].labels, labels, "{metric}");
            }
        }
        assert!(kinds.len() > 40);
    }
}

#[test]
fn the_events_page_has_an_example_of_each_type() {
    let page = committed("docs/events.md");
    let sections: Vec<_> = page.split("\n### `").skip(1).collect();
    let named: BTreeSet<_> = sections
        .iter()
        .map(|section| section.split('`').next().unwrap())
        .collect();
    let types: BTreeSet<_> = EventType::ALL.into_iter().map(EventType::as_str).collect();

    assert_eq!(named, types);
    for section in sections {
        let name = section.split('`').next().unwrap();
        let example = section.split("```json\n").nth(1).unwrap();
        let example = example.split("```").next().unwrap();
        let event: Value = serde_json::from_str(example).unwrap();

        assert_eq!(event["type"], name);
        assert_eq!(event["specversion"], "1.0");
        assert!(page.contains(&format!("| [`{name}`](#")), "{name}");
    }
}

//! Checks the dependencies between crates (from their manifests) and between the top-level modules of `src/`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Each top-level module of `src/`, with the modules that it may use.
const MODULES: [(&str, &[&str]); 5] = [
    ("actix", &[]),
    ("config", &[]),
    ("telemetry", &[]),
    ("app", &["config", "telemetry"]),
    ("cli", &["config", "telemetry", "app"]),
];

/// Names that only the listed crates and modules may use.
const NAMES: [(&str, &[&str]); 6] = [
    // only the composition root selects the store
    ("RedisStore", &["store-redis", "app", "actix"]),
    ("RedisSettings", &["store-redis", "app", "actix", "lib"]),
    // other crates handle the results of store calls, but only these call the store
    ("dyn Store", &["service", "telemetry", "app"]),
    // `store-redis` reads client certificates itself, because they may be renewed while the server runs
    (
        "std::fs",
        &["store-redis", "config", "telemetry", "cli", "fuzzing"],
    ),
    ("std::env", &["main", "config", "fuzzing"]),
    ("actix_http::ws", &["protocols"]),
];

struct Source {
    path: PathBuf,
    component: String,
    depth: usize,
    text: String,
}

impl Source {
    fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| line.split("//").next().unwrap());
        let text = lines.collect::<Vec<_>>().join("\n");
        let inside = path.strip_prefix(root()).unwrap().with_extension("");
        let parts: Vec<_> = inside.iter().map(|part| part.to_str().unwrap()).collect();
        let (component, module) = match parts[..] {
            ["crates", name, "src", ref module @ ..] => (name, module),
            ["src", name, ..] => (name, &parts[1..]),
            _ => unreachable!("{} is not a source file", path.display()),
        };
        let is_folder = module.last().is_some_and(|last| *last == "mod");
        Self {
            component: component.to_owned(),
            depth: module.len() - usize::from(is_folder),
            path,
            text,
        }
    }

    /// Returns the top-level modules in paths that begin with `crate::`, or with enough `super::` to reach the root.
    fn referenced_modules(&self) -> BTreeSet<String> {
        let from_the_root = self.text.split("crate::").skip(1);
        let up = "super::".repeat(self.depth);
        let from_below = self.text.split(&up).skip(1);
        from_the_root
            .chain(from_below)
            .flat_map(first_segments)
            .collect()
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the first segment of the path, or of each path in braces, at the start of `text`.
fn first_segments(text: &str) -> Vec<String> {
    let Some(group) = text.strip_prefix('{') else {
        return vec![name_at(text)];
    };
    let mut segments = Vec::new();
    let mut depth = 0;
    let mut is_start = true;
    for (at, byte) in group.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => break,
            b'}' => depth -= 1,
            b',' if depth == 0 => is_start = true,
            byte if is_start && !byte.is_ascii_whitespace() => {
                segments.push(name_at(&group[at..]));
                is_start = false;
            }
            _ => {}
        }
    }
    segments
}

fn name_at(text: &str) -> String {
    let is_name = |char: &char| char.is_alphanumeric() || *char == '_';
    text.chars().take_while(is_name).collect()
}

fn sources() -> Vec<Source> {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let crates = crates.map(|entry| entry.unwrap().path().join("src"));
    let mut folders: Vec<_> = crates.chain([root().join("src")]).collect();
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push(Source::read(path));
            }
        }
    }
    sources
}

struct Dependency {
    name: String,
    is_for_tests: bool,
}

/// Returns the dependencies of each workspace package, keyed by the package name without `threadkeep-`.
fn packages() -> BTreeMap<String, Vec<Dependency>> {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--locked", "--format-version=1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success());
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap().iter();
            let dependencies = dependencies.map(|dependency| Dependency {
                name: dependency["name"].as_str().unwrap().to_owned(),
                is_for_tests: dependency["kind"] == "dev",
            });
            (short(&package["name"]), dependencies.collect())
        })
        .collect()
}

fn short(name: &Value) -> String {
    let name = name.as_str().unwrap();
    name.strip_prefix("threadkeep-").unwrap_or(name).to_owned()
}

/// Parses the lines `crate -> crates` of the first diagram in ARCHITECTURE.md, from top to bottom.
fn diagram() -> Vec<(String, BTreeSet<String>)> {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let drawing = page.split("```").nth(1).unwrap().to_owned();
    let lines = drawing.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (from, to) = line.split_once("->").unwrap_or((line, ""));
            let to = to.split_whitespace().map(str::to_owned).collect();
            (from.trim().to_owned(), to)
        })
        .collect()
}

#[test]
fn the_crate_diagram_matches_the_manifests() {
    let packages = packages();
    let diagram = diagram();

    for (name, to) in &diagram {
        let dependencies = packages[name].iter();
        let members = dependencies
            .filter(|dependency| !dependency.is_for_tests)
            .filter_map(|dependency| dependency.name.strip_prefix("threadkeep-"))
            .map(str::to_owned)
            .collect::<BTreeSet<_>>();
        assert_eq!(to, &members, "{name}");
    }

    let below = fs::read_dir(root().join("crates")).unwrap();
    let below = below.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let all: BTreeSet<_> = below.chain(["threadkeep".to_owned()]).collect();
    assert_eq!(
        diagram
            .iter()
            .map(|(name, _)| name.clone())
            .collect::<BTreeSet<_>>(),
        all
    );
}

#[test]
fn the_crate_diagram_lists_each_crate_above_its_dependencies() {
    let diagram = diagram();
    for (index, (name, to)) in diagram.iter().enumerate() {
        let below: BTreeSet<_> = diagram[index + 1..]
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        assert!(to.is_subset(&below), "{name} depends on {to:?}");
    }
}

#[test]
fn each_dependency_of_a_crate_is_used() {
    let sources = sources();
    for (name, dependencies) in packages() {
        let texts: Vec<_> = sources
            .iter()
            .filter(|source| source.component == name)
            .map(|source| &source.text)
            .collect();
        if texts.is_empty() {
            // skip tools, and the program, whose modules share one manifest
            continue;
        }
        for dependency in dependencies {
            let crate_name = dependency.name.replace('-', "_");
            let is_used = texts.iter().any(|text| uses(text, &crate_name));
            assert!(is_used, "{name} does not use {}", dependency.name);
        }
    }
}

#[test]
fn modules_of_the_program_use_only_the_modules_below() {
    let modules: BTreeMap<_, _> = MODULES.into_iter().collect();
    let mut seen = BTreeSet::new();

    for source in &sources() {
        let Some(allowed) = modules.get(source.component.as_str()) else {
            continue;
        };
        for named in source.referenced_modules() {
            if named == source.component || !modules.contains_key(named.as_str()) {
                continue;
            }
            let path = source.path.display();
            assert!(allowed.contains(&named.as_str()), "{path} names {named}");
            seen.insert((source.component.clone(), named));
        }
    }

    let allowed = MODULES
        .iter()
        .flat_map(|(from, to)| to.iter().map(|to| ((*from).to_owned(), (*to).to_owned())));
    assert_eq!(seen, allowed.collect(), "an allowed dependency is unused");
}

#[test]
fn restricted_names_are_used_only_where_they_are_allowed() {
    let sources = sources();

    for (name, allowed) in NAMES {
        let users = sources.iter().filter(|source| mentions(&source.text, name));
        let mut seen = BTreeSet::new();
        for source in users {
            let path = source.path.display();
            assert!(
                allowed.contains(&source.component.as_str()),
                "{path} uses {name}"
            );
            seen.insert(source.component.as_str());
        }
        let allowed: BTreeSet<_> = allowed.iter().copied().collect();
        assert_eq!(seen, allowed, "components that may use {name}");
    }
}

fn uses(text: &str, crate_name: &str) -> bool {
    let begins = |char: char| !(char.is_alphanumeric() || "_:".contains(char));
    let is_path = |at: usize| {
        let (before, after) = (&text[..at], &text[at + crate_name.len()..]);
        before.ends_with(begins)
            && [":", " as ", ";"]
                .iter()
                .any(|next| after.starts_with(next))
    };
    text.match_indices(crate_name).any(|(at, _)| is_path(at))
}

fn mentions(text: &str, name: &str) -> bool {
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        !before.ends_with(is_word) && !after.starts_with(is_word)
    })
}

//! Compares the library's public API with `public-api.txt`, and fails if they differ. With the argument `accept`,
//! writes the current list instead. Usage: `cargo run -p threadkeep-public-api [accept]`
//!
//! The list comes from rustdoc's JSON, which stable rustdoc writes only if `RUSTC_BOOTSTRAP` is set. If Cargo had this
//! variable, some build scripts would run again. So Cargo runs this program as rustdoc, and only this program sets it.

mod hidden;
mod merge;

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use serde_json::Value;

const LIST: &str = "public-api.txt";
const ACCEPT: &str = "cargo run -p threadkeep-public-api -- accept";
/// The library's features on docs.rs.
const FEATURES: &str = "threadkeep/redis,threadkeep/tls,threadkeep/jwt";
const VERSIONS: &str =
    "tools/public-api/Cargo.toml has to name the version of the crate public-api that reads it";
/// Environment variable that makes this program act as rustdoc.
const AS_RUSTDOC: &str = "THREADKEEP_AS_RUSTDOC";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if env::var_os(AS_RUSTDOC).is_some() {
        return run_rustdoc();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let committed = root.join(LIST);
    let list = list_of(&root)?;
    if env::args().nth(1).as_deref() == Some("accept") {
        fs::write(&committed, list)?;
        return Ok(ExitCode::SUCCESS);
    }
    let old = fs::read_to_string(&committed)?;
    let differences = differences(&old, &list);
    print!("{differences}");
    if differences.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("\nThe public API is not what {LIST} says. If that is intended: {ACCEPT}");
    Ok(ExitCode::FAILURE)
}

fn run_rustdoc() -> Result<ExitCode, Box<dyn Error>> {
    let status = Command::new("rustdoc")
        .args(env::args_os().skip(1))
        .args(["-Zunstable-options", "--output-format=json"])
        .arg("--document-hidden-items")
        .env("RUSTC_BOOTSTRAP", "1")
        .status()?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Runs rustdoc on `packages`, with the features with which docs.rs documents the library.
fn describe(root: &Path, packages: &[String]) -> Result<(), Box<dyn Error>> {
    let status = Command::new("cargo")
        .current_dir(root)
        .env("RUSTDOC", env::current_exe()?)
        .env(AS_RUSTDOC, "1")
        .args(["doc", "--quiet", "--locked", "--lib", "--no-deps"])
        .args(["--no-default-features", "--features", FEATURES])
        .args(packages.iter().flat_map(|package| ["--package", package]))
        .arg("--target-dir")
        .arg(root.join("target"))
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err("rustdoc failed".into()),
    }
}

fn read_json(root: &Path, crate_name: &str) -> Result<Value, Box<dyn Error>> {
    let path = root.join(format!("target/doc/{crate_name}.json"));
    Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
}

/// Returns one line per item, without blanket and derived impls.
fn list_of(root: &Path) -> Result<String, Box<dyn Error>> {
    describe(root, &["threadkeep".to_owned()])?;
    let library = read_json(root, "threadkeep")?;
    let members = members(&library);
    let packages = members.iter().map(|name| name.replace('_', "-"));
    describe(
        root,
        &packages
            .chain(["threadkeep".to_owned()])
            .collect::<Vec<_>>(),
    )?;
    let members = members.iter().map(|name| read_json(root, name));
    let crates = [Ok(library)].into_iter().chain(members);
    let mut described = merge::merge(crates.collect::<Result<_, _>>()?).ok_or("no such JSON")?;
    hidden::strip(&mut described);
    let stripped = root.join("target/doc/threadkeep.public.json");
    fs::write(&stripped, described.to_string())?;
    let api = public_api::Builder::from_rustdoc_json(stripped)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .map_err(|error| format!("{error}. Each Rust writes a format of its own: {VERSIONS}"))?;
    Ok(api.to_string())
}

fn members(described: &Value) -> Vec<String> {
    let crates = described["external_crates"].as_object().into_iter();
    let names = crates
        .flatten()
        .filter_map(|(_, other)| other["name"].as_str());
    let mut names: Vec<_> = names
        .filter(|name| name.starts_with("threadkeep_"))
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    names
}

/// Returns the lines that are only in `old`, marked `-`, and then the lines that are only in `new`, marked `+`.
fn differences(old: &str, new: &str) -> String {
    let only_in = |these: &str, others: &str, sign| {
        let others: Vec<_> = others.lines().collect();
        let lines = these.lines().filter(|line| !others.contains(line));
        lines
            .map(|line| format!("{sign} {line}\n"))
            .collect::<String>()
    };
    only_in(old, new, '-') + &only_in(new, old, '+')
}

//! Compares the public API of the library with `public-api.txt`, and fails if they differ: `cargo run -p
//! threadkeep-public-api`. With `accept` it writes the current list.
//!
//! The list comes from rustdoc's JSON, which only a nightly compiler would write. Rustdoc of the stable one does if
//! `RUSTC_BOOTSTRAP` is set. It is set only for rustdoc, or build scripts would see it and everything would be
//! compiled again: Cargo runs this program as rustdoc, and this program runs the real one.

mod hidden;

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const LIST: &str = "public-api.txt";
const ACCEPT: &str = "cargo run -p threadkeep-public-api -- accept";
const VERSIONS: &str =
    "tools/public-api/Cargo.toml has to name the version of the crate public-api that reads it";
/// Set for this program when it stands in for rustdoc.
const AS_RUSTDOC: &str = "THREADKEEP_AS_RUSTDOC";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if env::var_os(AS_RUSTDOC).is_some() {
        return run_rustdoc();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let committed = root.join(LIST);
    let list = list_of(&write_json(&root)?)?;
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
        .env("RUSTC_BOOTSTRAP", "1")
        .status()?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Has rustdoc describe the library as apps use it, and returns where.
fn write_json(root: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let target = root.join("target");
    let status = Command::new("cargo")
        .current_dir(root)
        .env("RUSTDOC", env::current_exe()?)
        .env(AS_RUSTDOC, "1")
        .args(["rustdoc", "--quiet", "--locked", "--lib"])
        .args(["--no-default-features", "--features", "redis,tls,jwt"])
        .arg("--target-dir")
        .arg(&target)
        .args(["--", "-Zunstable-options", "--output-format=json"])
        .arg("--document-hidden-items")
        .status()?;
    match status.success() {
        true => Ok(target.join("doc/threadkeep.json")),
        false => Err("rustdoc failed".into()),
    }
}

/// One line for each item, without what every type gets and what a derive writes.
fn list_of(json: &Path) -> Result<String, Box<dyn Error>> {
    let mut described = serde_json::from_str(&fs::read_to_string(json)?)?;
    hidden::strip(&mut described);
    let stripped = json.with_extension("public.json");
    fs::write(&stripped, described.to_string())?;
    let api = public_api::Builder::from_rustdoc_json(stripped)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .map_err(|error| format!("{error}. Each Rust writes a format of its own: {VERSIONS}"))?;
    Ok(api.to_string())
}

/// The lines that only one of the lists has, as `-` and `+`. Both are sorted in the same way.
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

use std::error::Error;
use std::fs;
use std::process::Command;

use serde_json::{Map, Value};

use super::peer::Programs;

const NPM: &str = include_str!("../../../express/package.json");
const PYPI: &str = include_str!("../../../fastapi/requirements.txt");
const CARGO: &str = include_str!("../../Cargo.lock");

pub(super) fn all(programs: &Programs<'_>) -> Result<Vec<String>, Box<dyn Error>> {
    let output_of = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let redis = output_of("redis-server", &["--version"])?;
    let redis = redis.split(' ').find_map(|word| word.strip_prefix("v="));
    let webdis = programs.installed.join("webdis/version");
    let python = programs.installed.join("fastapi/bin/python");
    let packages: Value = serde_json::from_str(NPM)?;
    let npm = packages["dependencies"].as_object().map(npm);
    Ok(vec![
        format!("Redis {}", redis.unwrap_or_default()),
        format!(
            "{} of this source",
            output_of(programs.product, &["--version"])?
        ),
        crates(&["actix-web", "deadpool-redis", "actix-session"]),
        format!("Webdis {}", fs::read_to_string(webdis)?.trim()),
        npm.unwrap_or_default(),
        format!(
            "{}, {}",
            output_of(&python.to_string_lossy(), &["--version"])?,
            PYPI.lines()
                .collect::<Vec<_>>()
                .join(", ")
                .replace("==", " ")
        ),
    ])
}

fn npm(packages: &Map<String, Value>) -> String {
    let named = packages.iter();
    let named = named.map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or("?")));
    named.collect::<Vec<_>>().join(", ")
}

fn crates(names: &[&str]) -> String {
    let version = |name: &&str| {
        let entry = format!("name = \"{name}\"\nversion = \"");
        let (_, rest) = CARGO.split_once(&entry)?;
        Some(format!("{name} {}", rest.split('"').next()?))
    };
    names
        .iter()
        .filter_map(version)
        .collect::<Vec<_>>()
        .join(", ")
}

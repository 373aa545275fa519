//! The arrows of the house point down only. They are read off the source.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each room, and the rooms that it may know.
const ARROWS: [(&str, &[&str]); 20] = [
    ("tls", &[]),
    ("alarm", &[]),
    ("egress", &["tls"]),
    ("stats", &[]),
    ("trace", &[]),
    ("store", &["alarm", "trace", "tls"]),
    ("service", &["trace", "store"]),
    ("events", &["trace", "store"]),
    ("webhooks", &["trace", "store", "events", "egress"]),
    ("upstreams", &["service", "egress"]),
    ("online", &["service", "egress", "upstreams"]),
    ("identity", &["tls"]),
    ("web", &["store", "service", "identity", "webhooks"]),
    (
        "http",
        &[
            "alarm", "stats", "trace", "store", "service", "events", "webhooks", "identity", "web",
        ],
    ),
    (
        "protocols",
        &["store", "service", "events", "identity", "web", "http"],
    ),
    ("actix", &["store", "service", "events", "identity", "web"]),
    (
        "telemetry",
        &[
            "tls",
            "stats",
            "trace",
            "store",
            "service",
            "events",
            "identity",
            "web",
            "http",
            "protocols",
        ],
    ),
    (
        "config",
        &[
            "store",
            "events",
            "webhooks",
            "upstreams",
            "online",
            "identity",
        ],
    ),
    (
        "app",
        &[
            "alarm",
            "stats",
            "trace",
            "store",
            "service",
            "events",
            "webhooks",
            "upstreams",
            "online",
            "identity",
            "web",
            "http",
            "protocols",
            "actix",
            "telemetry",
            "config",
        ],
    ),
    (
        "cli",
        &[
            "tls",
            "store",
            "service",
            "events",
            "webhooks",
            "identity",
            "web",
            "http",
            "protocols",
            "actix",
            "telemetry",
            "config",
            "app",
        ],
    ),
];

/// Names that only some modules may use. A name that ends in `::` is a crate.
const NAMES: [(&str, &[&str]); 11] = [
    // which store there is, is known where it is chosen
    ("RedisStore", &["store", "app", "actix"]),
    ("RedisSettings", &["store", "app", "actix", "lib"]),
    // others know what a store answers, but none of its methods
    ("dyn Store", &["store", "service", "telemetry", "app"]),
    ("redis::", &["store"]),
    // HTTP clients
    (
        "reqwest::",
        &[
            "egress",
            "webhooks",
            "upstreams",
            "online",
            "identity",
            "telemetry",
            "cli",
        ],
    ),
    // no HTTP below the rooms that speak it
    (
        "actix_web::",
        &[
            "identity",
            "web",
            "http",
            "protocols",
            "actix",
            "telemetry",
            "config",
            "app",
            "cli",
        ],
    ),
    // the parts of actix-web, for protocols other than HTTP
    ("actix_http::ws", &["protocols"]),
    // no I/O and no time of day in the rules
    (
        "tokio::",
        &[
            "alarm",
            "egress",
            "trace",
            "store",
            "service",
            "events",
            "webhooks",
            "upstreams",
            "online",
            // for keys that an issuer of tokens publishes
            "identity",
            "http",
            "actix",
            "protocols",
            "telemetry",
            "app",
            "cli",
        ],
    ),
    // the store for client certificates, which are renewed while it runs
    ("std::fs", &["store", "config", "telemetry", "cli"]),
    (
        "std::net",
        &[
            // IPv6 addresses in URLs of Redis
            "store",
            "egress",
            "webhooks",
            "online",
            "identity",
            "web",
            "http",
            "telemetry",
            "config",
            "app",
            "cli",
        ],
    ),
    ("std::env", &["main", "config"]),
];

/// A source file: its room, its module path, and its text without comments.
struct Source {
    path: PathBuf,
    module: Vec<String>,
    text: String,
}

impl Source {
    fn read(root: &Path, path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| line.split("//").next().unwrap());
        let text = lines.collect::<Vec<_>>().join("\n");
        let inside = path.strip_prefix(root).unwrap().with_extension("");
        let mut module: Vec<_> = inside
            .iter()
            .map(|part| part.to_str().unwrap().to_owned())
            .collect();
        module.pop_if(|last| last == "mod");
        Self { path, module, text }
    }

    fn room(&self) -> &str {
        &self.module[0]
    }

    /// The rooms that paths from the crate's root name, with `crate::` or enough `super::`.
    fn rooms_named(&self) -> BTreeSet<String> {
        let from_the_root = self.text.split("crate::").skip(1);
        let up = "super::".repeat(self.module.len());
        let from_below = self.text.split(&up).skip(1);
        from_the_root.chain(from_below).flat_map(heads).collect()
    }
}

/// The first names of the path or of the braced paths that a text begins with.
fn heads(text: &str) -> Vec<String> {
    let Some(group) = text.strip_prefix('{') else {
        return vec![name_at(text)];
    };
    let mut heads = Vec::new();
    let mut depth = 0;
    let mut is_start = true;
    for (at, byte) in group.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => break,
            b'}' => depth -= 1,
            b',' if depth == 0 => is_start = true,
            byte if is_start && !byte.is_ascii_whitespace() => {
                heads.push(name_at(&group[at..]));
                is_start = false;
            }
            _ => {}
        }
    }
    heads
}

fn name_at(text: &str) -> String {
    let is_name = |char: &char| char.is_alphanumeric() || *char == '_';
    text.chars().take_while(is_name).collect()
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push(Source::read(&root, path));
            }
        }
    }
    sources
}

fn arrows_of(room: &str) -> Option<&'static [&'static str]> {
    let (_, to) = ARROWS.iter().find(|(from, _)| *from == room)?;
    Some(to)
}

#[test]
fn rooms_know_only_the_rooms_below() {
    let sources = sources();
    let mut seen = BTreeSet::new();

    for source in &sources {
        let Some(allowed) = arrows_of(source.room()) else {
            assert!(
                ["lib", "main"].contains(&source.room()),
                "{} is in no room that has arrows",
                source.path.display()
            );
            continue;
        };
        for named in source.rooms_named() {
            if named == source.room() || arrows_of(&named).is_none() {
                continue;
            }
            assert!(
                allowed.contains(&named.as_str()),
                "{} names {named}",
                source.path.display()
            );
            seen.insert((source.room().to_owned(), named));
        }
    }

    // or the source was not understood
    for (from, to) in [("store", "trace"), ("http", "service"), ("app", "store")] {
        assert!(seen.contains(&(from.to_owned(), to.to_owned())));
    }
}

#[test]
fn the_arrows_make_no_circle() {
    for (place, (from, to)) in ARROWS.iter().enumerate() {
        let before: Vec<_> = ARROWS[..place].iter().map(|(room, _)| room).collect();
        for room in *to {
            assert!(before.contains(&room), "{from} knows {room}");
        }
    }
}

#[test]
fn some_names_stay_in_their_rooms() {
    let sources = sources();

    for (name, rooms) in NAMES {
        let sayers: Vec<_> = sources
            .iter()
            .filter(|source| says(&source.text, name))
            .collect();

        for source in &sayers {
            let path = source.path.display();
            assert!(rooms.contains(&source.room()), "{path} says {name}");
        }
        assert!(!sayers.is_empty(), "nobody says {name}");
    }
}

/// Whether a text has that name as a whole; one of a crate, as the beginning of a path.
fn says(text: &str, name: &str) -> bool {
    let is_crate = name.ends_with("::");
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    let goes_on = |char: char| is_word(char) || is_crate && char == ':';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        !before.ends_with(goes_on) && (is_crate || !after.starts_with(is_word))
    })
}

use std::error::Error;
use std::io;
use std::path::PathBuf;

/// Error for invalid settings. The source of the error describes the fault. Error messages never contain secrets.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("unknown setting `{name}` in {origin}{}", suggestion(nearest.as_deref()))]
    Unknown {
        name: String,
        origin: String,
        nearest: Option<String>,
    },
    #[error("the setting `{name}` from {origin}")]
    Invalid {
        name: String,
        origin: String,
        #[source]
        fault: Fault,
    },
    #[error("the settings file {}", .0.display())]
    File(PathBuf, #[source] Fault),
    #[error("the settings cannot be merged")]
    Merge(#[source] config::ConfigError),
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("it must be {0}")]
    Expected(&'static str),
    #[error("`{0}` is set too; remove one of them")]
    Both(&'static str),
    #[error("it is required {0}")]
    Needed(&'static str),
    #[error("key {number}: {rule}")]
    Key {
        /// One-based position of the item in the list. The item itself is omitted because it may contain a secret.
        number: usize,
        rule: &'static str,
    },
    #[error("item {number}: {rule}")]
    Item {
        /// One-based position of the item in the list. The item itself is omitted because it may contain a secret.
        number: usize,
        rule: &'static str,
    },
    #[error("cannot read {}", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    #[error("{0}")]
    Toml(String),
    #[error(transparent)]
    Other(Box<dyn Error + Send + Sync>),
}

//! Errors of settings.

use std::error::Error;
use std::io;
use std::path::PathBuf;

/// Invalid settings. The source of the error names the fault; no text contains a secret.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// No setting has that name.
    #[error("unknown setting `{name}` in {origin}{}", suggestion(nearest.as_deref()))]
    Unknown {
        /// The given name.
        name: String,
        /// The source of the setting.
        origin: String,
        /// The setting with the most similar name.
        nearest: Option<String>,
    },
    /// A setting has a value that cannot be used.
    #[error("the setting `{name}` from {origin}")]
    Invalid {
        /// The setting.
        name: String,
        /// Where the value comes from.
        origin: String,
        /// The cause.
        #[source]
        fault: Fault,
    },
    /// The settings file cannot be read.
    #[error("the settings file {}", .0.display())]
    File(PathBuf, #[source] Fault),
    /// The layers do not merge.
    #[error("the settings cannot be merged")]
    Merge(#[source] config::ConfigError),
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// An error in a setting or a file.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The value is invalid.
    #[error("it must be {0}")]
    Expected(&'static str),
    /// Two settings exclude each other.
    #[error("`{0}` is set too; remove one of them")]
    Both(&'static str),
    /// Another setting requires this one.
    #[error("it is required {0}")]
    Needed(&'static str),
    /// A key in a list of keys is wrong.
    #[error("key {number}: {rule}")]
    Key {
        /// Its number in the list, from 1. The text is left out, since it may contain a secret.
        number: usize,
        /// The broken rule.
        rule: &'static str,
    },
    /// An item in a list is wrong.
    #[error("item {number}: {rule}")]
    Item {
        /// Its number in the list, from 1. The text is left out, since it may contain a secret.
        number: usize,
        /// The broken rule.
        rule: &'static str,
    },
    /// A file could not be read.
    #[error("cannot read {}", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// The file is not TOML.
    #[error("{0}")]
    Toml(String),
    /// The source's own text.
    #[error(transparent)]
    Other(Box<dyn Error + Send + Sync>),
}

//! Why settings are refused.

use std::error::Error;
use std::io;
use std::path::PathBuf;

/// Settings that cannot be used. The source of the error says what is wrong; no text holds a
/// secret.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// No setting has that name.
    #[error("unknown setting `{name}` in {origin}{}", suggestion(nearest.as_deref()))]
    Unknown {
        /// The name as it was given.
        name: String,
        /// Where it was given.
        origin: String,
        /// The setting that was probably meant.
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
    /// It is not what it has to be.
    #[error("it must be {0}")]
    Expected(&'static str),
    /// Two settings say the same thing.
    #[error("`{0}` is set too; remove one of them")]
    Both(&'static str),
    /// Another setting asks for it.
    #[error("it is required {0}")]
    Needed(&'static str),
    /// A key in a list of keys is wrong.
    #[error("key {number}: {rule}")]
    Key {
        /// Its place, from 1; its text may hold a secret.
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

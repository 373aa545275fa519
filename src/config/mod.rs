//! Settings from the default file, a settings file, `THREADKEEP_*` variables and flags. In this list, later sources
//! override earlier sources.
//!
//! To add a setting, add an entry to `default.toml` and a field to [`Settings`]. Flags, help and the report of
//! `threadkeep config` are derived from the entry.

mod callers;
mod catalog;
mod client;
mod cors;
mod environment;
mod error;
mod given;
mod identity;
mod keys;
mod layers;
mod listen;
mod log_filter;
mod machine;
mod mask;
mod mcp;
mod models;
mod nearest;
mod online;
mod otlp;
mod public_url;
mod rates;
mod redis_certificate;
mod redis_url;
mod renamed;
mod settings;
#[cfg(test)]
mod tests;
pub(crate) mod text_file;
mod values;
mod warning;
mod webhooks;

use given::Given;
use keys::named_secrets;
use models::{is_model, url_of};
use redis_url::RedisUrlError;
use renamed::{Renamed, earlier_names, renamed};

pub use catalog::{DEFAULT_FILE, Setting, flag_of};
pub use client::{ClientSettings, local_url};
pub use cors::CorsOrigins;
pub use error::{Fault, SettingsError};
pub use layers::Layers;
pub use mcp::McpSettings;
pub use models::{ModelSetting, ModelSettings, UpstreamKind, UpstreamSetting};
pub use online::{ImagesSetting, OnlineSettings};
pub use otlp::TraceSettings;
pub(crate) use public_url::own_origin;
pub use redis_url::RedisUrl;
pub use settings::{LogFormat, LogSettings, Settings, StoreSettings};
pub use values::{Provenance, Values};
pub use warning::Warning;

pub const PREFIX: &str = "THREADKEEP_";

/// Environment variable that contains the path of the settings file. The variable itself is not a setting.
pub const CONFIG: &str = "THREADKEEP_CONFIG";

const DEFAULT: &str = "default";

use serde::Serialize;

use crate::config::Settings;

/// Information about the server for the greeting in the terminal and for `GET /`. Contains no secrets.
#[derive(Debug, Clone, Serialize)]
pub struct ServerInfo {
    name: &'static str,
    version: &'static str,
    store: StoreKind,
    api_keys: bool,
    console: &'static str,
    documentation: &'static str,
    openapi: &'static str,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum StoreKind {
    Memory,
    Redis,
}

impl ServerInfo {
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            name: "threadkeep",
            version: env!("CARGO_PKG_VERSION"),
            store: match settings.store.redis_url {
                None => StoreKind::Memory,
                Some(_) => StoreKind::Redis,
            },
            api_keys: !settings.api_keys.is_empty(),
            console: "/console",
            documentation: "/docs",
            openapi: "/openapi.json",
        }
    }

    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// Returns a heading and a description for each topic. `base` is the URL of the server; an empty `base` makes links
    /// relative.
    #[must_use]
    pub fn lines(&self, base: &str) -> [(&'static str, String); 4] {
        let store = match self.store {
            StoreKind::Memory => {
                "in memory: threads are lost when the server stops (set `redis_url` to keep them)"
            }
            StoreKind::Redis => "in Redis: threads outlive the server, and all replicas share them",
        };
        let api_keys = match self.api_keys {
            true => "set: back ends can access every thread with an API key",
            false => "none: paths for back ends, such as /v1/kv, answer 401 (set `api_keys`)",
        };
        [
            ("Store", store.into()),
            ("Console", format!("{base}{}", self.console)),
            ("Docs", format!("{base}{}", self.documentation)),
            ("API keys", api_keys.into()),
        ]
    }
}

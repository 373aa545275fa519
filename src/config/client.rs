use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Layers, SettingsError, listen, named_secrets};

#[derive(Clone)]
pub struct ClientSettings {
    pub server: String,
    pub api_key: Option<String>,
}

impl ClientSettings {
    /// Reads `THREADKEEP_URL` and `THREADKEEP_API_KEY`. If a variable is not set, falls back to the settings of the
    /// server on this machine.
    pub fn parse(layers: &Layers) -> Result<Self, SettingsError> {
        let (url, api_key) = layers.client();
        let mut values = layers.merge()?;
        let listen = listen::read(&values.take("listen"))?;
        let file = values.take("api_keys_file");
        let given = values.take("api_keys").or_file(file)?;
        let keys = named_secrets(&given)?;
        Ok(Self {
            server: url.unwrap_or_else(|| local_url(listen)),
            api_key: api_key.or_else(|| keys.first().map(|key| key.secret.to_owned())),
        })
    }
}

/// Returns the URL that clients on this machine use for a server that listens on `listen`.
#[must_use]
pub fn local_url(mut listen: SocketAddr) -> String {
    // a server that listens on all addresses also listens on the loopback address
    if listen.ip().is_unspecified() {
        listen.set_ip(match listen {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{listen}")
}

/// Omits the secret.
impl fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSettings")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

//! Counts the open connections of clients.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The number of open connections. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Connections(Gauge);

/// A connection; it counts until it is dropped.
#[derive(Debug)]
pub struct OpenConnection(Gauge);

impl Connections {
    /// Adds the number to a registry.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let open = Gauge::default();
        let help = "Open client connections";
        registry.register("connections", help, open.clone());
        Self(open)
    }

    /// The number now.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.get().try_into().unwrap_or(0)
    }

    /// Counts one more.
    #[must_use]
    pub fn open(&self) -> OpenConnection {
        self.0.inc();
        OpenConnection(self.0.clone())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The number of open client connections. All clones share one count.
#[derive(Debug, Clone, Default)]
pub struct Connections(Gauge);

/// Guard that counts as an open connection until it is dropped.
#[derive(Debug)]
pub struct OpenConnection(Gauge);

impl Connections {
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let open = Gauge::default();
        let help = "Open client connections";
        registry.register("connections", help, open.clone());
        Self(open)
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.get().try_into().unwrap_or(0)
    }

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

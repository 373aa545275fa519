//! Logs, metrics and traces.

mod chain;
mod connections;
mod current;
mod events;
mod http;
mod jwks;
mod labelled;
mod labels;
mod links;
mod log_writer;
mod logs;
mod memory;
mod observer;
#[cfg(feature = "otel")]
mod otlp;
mod process;
mod rates;
mod read_cache;
mod signing;
mod sockets;
mod store;
mod threads;
mod turns;
mod unreadable;

pub use chain::Chain;
pub use connections::{Connections, OpenConnection};
pub use events::register_events;
pub use http::HttpMetrics;
pub use jwks::register_jwks;
pub use links::register_links;
pub use log_writer::{flush_log, register_log};
pub use logs::{LogError, log_json, log_text};
pub use memory::register_memory;
pub use observer::{Observer, RequestLogs};
#[cfg(feature = "otel")]
pub use otlp::{Collector, Exporter, SpanCounts, register_spans};
pub use process::register_process;
pub use rates::register_rates;
pub use read_cache::register_read_cache;
pub use signing::register_signing;
pub use sockets::register_sockets;
pub use store::ObservedStore;
pub use turns::{TurnMetrics, register_running_turns};
pub use unreadable::register_unreadable;

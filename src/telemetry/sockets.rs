//! Metrics of sockets.

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::current::{counter, gauge, register};
use super::labelled::total;
use super::labels::{Basis, SocketRequest};
use threadkeep_protocols::agentuity::{BasisCounters, RequestCounters, SocketCounters};

/// Adds the metrics of sockets to a registry.
pub fn register_sockets(registry: &mut Registry, counters: &Arc<SocketCounters>) {
    let counters = Arc::clone(counters);
    register(registry, move |encoder| show(&counters, encoder));
}

fn show(counters: &SocketCounters, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let help = "Open sockets on /thread/ws";
    gauge(encoder, "sockets", help, None, counters.open.get())?;
    let help = "Sockets rejected because of their API key";
    let turned_away = counters.turned_away.get();
    counter(encoder, "sockets_turned_away", help, turned_away)?;
    let help = "Saves recomputed because of a concurrent write";
    let conflicts = counters.conflicts.get();
    counter(encoder, "socket_save_conflicts", help, conflicts)?;
    saves(&counters.bases, encoder)?;
    requests(counters, encoder)
}

fn saves(of: &BasisCounters, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let help = "Saves, by the snapshot that they were based on";
    let mut family = encoder.encode_descriptor("socket_saves", help, None, MetricType::Counter)?;
    for (basis, count) in [
        ("latest", &of.latest),
        ("earlier", &of.earlier),
        ("nothing", &of.nothing),
    ] {
        total(&mut family, &Basis { basis }, count.get())?;
    }
    Ok(())
}

fn requests(of: &SocketCounters, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let (name, help) = ("socket_requests", "Socket requests, by outcome");
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (action, of) in [
        ("restore", &of.restore),
        ("save", &of.save),
        ("merge", &of.merge),
        ("delete", &of.delete),
    ] {
        let RequestCounters {
            done,
            refused,
            failed,
        } = of;
        for (outcome, count) in [("done", done), ("refused", refused), ("failed", failed)] {
            total(&mut family, &SocketRequest { action, outcome }, count.get())?;
        }
    }
    let (action, outcome) = ("unreadable", "refused");
    let labels = SocketRequest { action, outcome };
    total(&mut family, &labels, of.unreadable.get())
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn every_counter_is_shown() {
        let counters = Arc::new(SocketCounters::default());
        let mut registry = Registry::default();
        register_sockets(registry.sub_registry_with_prefix("threadkeep"), &counters);
        counters.open.inc();
        counters.save.failed.add(2);
        counters.unreadable.inc();
        counters.bases.earlier.add(3);

        let mut text = String::new();
        encode(&mut text, &registry).unwrap();

        for line in [
            "threadkeep_sockets 1",
            "threadkeep_sockets_turned_away_total 0",
            r#"threadkeep_socket_requests_total{action="restore",outcome="done"} 0"#,
            r#"threadkeep_socket_requests_total{action="save",outcome="failed"} 2"#,
            r#"threadkeep_socket_requests_total{action="unreadable",outcome="refused"} 1"#,
            r#"threadkeep_socket_saves_total{basis="earlier"} 3"#,
            "threadkeep_socket_save_conflicts_total 0",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}

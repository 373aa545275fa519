use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use super::current::{by, counter, counters, gauge, register};
use threadkeep_protocols::agentuity::{RequestCounters, SocketCounters};

pub fn register_sockets(registry: &mut Registry, counters: &Arc<SocketCounters>) {
    let counters = Arc::clone(counters);
    register(registry, move |encoder| show(&counters, encoder));
}

fn show(sockets: &SocketCounters, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let help = "Open sockets on /thread/ws";
    gauge(encoder, "sockets", help, None, sockets.open.get())?;
    let help = "Sockets rejected because of their API key";
    let rejected = sockets.rejected.get();
    counter(encoder, "sockets_rejected", help, rejected)?;
    let help = "Saves recomputed because of a concurrent write";
    let conflicts = sockets.conflicts.get();
    counter(encoder, "socket_save_conflicts", help, conflicts)?;
    let help = "Saves, by the snapshot that they were based on";
    let saves = [
        ("latest", sockets.bases.latest.get()),
        ("earlier", sockets.bases.earlier.get()),
        ("nothing", sockets.bases.nothing.get()),
    ];
    counters(encoder, "socket_saves", help, by("basis", saves))?;
    let help = "Socket requests, by outcome";
    let actions = [
        ("restore", &sockets.restore),
        ("save", &sockets.save),
        ("merge", &sockets.merge),
        ("delete", &sockets.delete),
    ];
    let requests = actions.into_iter().flat_map(|(action, of)| {
        let RequestCounters {
            done,
            refused,
            failed,
        } = of;
        let outcomes = [("done", done), ("refused", refused), ("failed", failed)];
        outcomes.map(|(outcome, count)| (action, outcome, count))
    });
    let unreadable = ("unreadable", "refused", &sockets.unreadable);
    let requests = requests
        .chain([unreadable])
        .map(|(action, outcome, count)| {
            let labels = [("action", action), ("outcome", outcome)];
            (labels, count.get())
        });
    counters(encoder, "socket_requests", help, requests)
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
            "threadkeep_sockets_rejected_total 0",
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

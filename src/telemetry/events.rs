//! Metrics of events.

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::current::{counter, gauge, register};
use super::labelled::{level, total};
use super::labels::{Consumer, Delivery, Outcome, Stream};
use threadkeep_events::{DeliveryCounters, EventCounters};
use threadkeep_store::Clock;

/// Adds the metrics of events to a registry.
pub fn register_events(registry: &mut Registry, counters: &Arc<EventCounters>) {
    let counters = Arc::clone(counters);
    register(registry, move |encoder| show(&counters, encoder));
}

fn show(counters: &EventCounters, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let help = "Events read from the log, counted once per reader";
    counter(encoder, "events_read", help, counters.events_read.get())?;
    let help = "Event streams closed because their reader was too slow";
    let cut_off = counters.streams_cut_off.get();
    counter(encoder, "event_streams_cut_off", help, cut_off)?;
    let help = "Resets sent to readers that missed events";
    counter(encoder, "event_resets", help, counters.resets.get())?;
    let help = "Session events that were dropped";
    let dropped = counters.sessions_dropped.get();
    counter(encoder, "sessions_dropped", help, dropped)?;
    reaper(counters, encoder)?;
    let (name, help) = ("event_streams", "Open event streams");
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (of, count) in [
        ("thread", &counters.thread_streams),
        ("all", &counters.global_streams),
    ] {
        level(&mut family, &Stream { of }, count.get())?;
    }
    deliveries(counters, encoder)?;
    delivery_lag(counters, encoder)
}

fn reaper(counters: &EventCounters, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let (name, help) = ("reaped", "Due threads handled by the reaper, by outcome");
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (outcome, count) in [
        ("ended", &counters.threads_ended),
        ("lost", &counters.threads_lost),
        ("moved", &counters.threads_moved),
    ] {
        total(&mut family, &Outcome { outcome }, count.get())?;
    }
    let lag = counters.reaper_lag_ms.get() as f64 / 1000.0;
    let (name, help) = (
        "reaper_lag",
        "Age of the oldest due thread that has not been ended",
    );
    let unit = Some(&Unit::Seconds);
    let family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    ConstGauge::new(lag).encode(family)?;
    let help = "1 while the reaper ends no threads because the clocks of server and store differ";
    let stopped = counters.reaper_stopped.get();
    gauge(encoder, "reaper_stopped", help, None, stopped)
}

fn deliveries(
    counters: &EventCounters,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    let help = "Deliveries to webhook endpoints and to subscribers of this process, by outcome";
    let mut family = encoder.encode_descriptor("deliveries", help, None, MetricType::Counter)?;
    for (consumer, of) in [
        ("webhook", &counters.webhooks),
        ("subscriber", &counters.subscribers),
    ] {
        let DeliveryCounters {
            delivered,
            failed,
            parked,
            lag: _,
        } = of;
        for (outcome, count) in [
            ("delivered", delivered),
            ("failed", failed),
            ("parked", parked),
        ] {
            total(&mut family, &Delivery { consumer, outcome }, count.get())?;
        }
    }
    Ok(())
}

fn delivery_lag(
    counters: &EventCounters,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    let now_ms = Clock::system().now_ms();
    let help = "Age of the oldest undelivered event";
    let (name, unit) = ("delivery_lag", Some(&Unit::Seconds));
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for (consumer, of) in [
        ("webhook", &counters.webhooks),
        ("subscriber", &counters.subscribers),
    ] {
        let seconds = of.lag.ms_at(now_ms) as f64 / 1000.0;
        let labels = Consumer { consumer };
        ConstGauge::new(seconds).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn every_counter_is_shown() {
        let counters = Arc::new(EventCounters::default());
        let mut registry = Registry::default();
        let own = registry.sub_registry_with_prefix("threadkeep");
        register_events(own, &counters);
        counters.threads_lost.inc();
        counters.reaper_lag_ms.set(1_500);
        counters.webhooks.parked.add(3);
        counters.global_streams.inc();

        let mut text = String::new();
        encode(&mut text, &registry).unwrap();

        for line in [
            "threadkeep_events_read_total 0",
            "threadkeep_event_streams_cut_off_total 0",
            "threadkeep_event_resets_total 0",
            "threadkeep_sessions_dropped_total 0",
            r#"threadkeep_reaped_total{outcome="lost"} 1"#,
            "threadkeep_reaper_lag_seconds 1.5",
            "threadkeep_reaper_stopped 0",
            r#"threadkeep_event_streams{of="thread"} 0"#,
            r#"threadkeep_event_streams{of="all"} 1"#,
            r#"threadkeep_deliveries_total{consumer="webhook",outcome="parked"} 3"#,
            r#"threadkeep_deliveries_total{consumer="subscriber",outcome="failed"} 0"#,
            r#"threadkeep_delivery_lag_seconds{consumer="webhook"} 0.0"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::{Registry, Unit};

use super::current::{by, counter, counters, gauge, gauges, register};
use threadkeep_events::{DeliveryCounters, EventCounters};
use threadkeep_store::Clock;

pub fn register_events(registry: &mut Registry, counters: &Arc<EventCounters>) {
    let counters = Arc::clone(counters);
    register(registry, move |encoder| show(&counters, encoder));
}

fn show(events: &EventCounters, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let help = "Events read from the log, counted once per reader";
    counter(encoder, "events_read", help, events.events_read.get())?;
    let help = "Event streams closed because their reader was too slow";
    let cut_off = events.streams_cut_off.get();
    counter(encoder, "event_streams_cut_off", help, cut_off)?;
    let help = "Resets sent to readers that missed events";
    counter(encoder, "event_resets", help, events.resets.get())?;
    let help = "Session events that were dropped";
    let dropped = events.sessions_dropped.get();
    counter(encoder, "sessions_dropped", help, dropped)?;
    reaper(events, encoder)?;
    let streams = [
        ("thread", events.thread_streams.get()),
        ("all", events.global_streams.get()),
    ];
    let (name, help) = ("event_streams", "Open event streams");
    gauges(encoder, name, help, None, by("of", streams))?;
    deliveries(events, encoder)
}

fn reaper(events: &EventCounters, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let help = "Due threads that the reaper left alone because they had been used";
    let moved = events.threads_moved.get();
    counter(encoder, "reaper_postponed", help, moved)?;
    let lag = events.reaper_lag_ms.get() as f64 / 1000.0;
    let help = "Age of the oldest due thread that has not been ended";
    gauge(encoder, "reaper_lag", help, Some(&Unit::Seconds), lag)?;
    let help = "1 while the reaper ends no threads because the clocks of server and store differ";
    let stopped = events.reaper_stopped.get();
    gauge(encoder, "reaper_stopped", help, None, stopped)
}

fn deliveries(
    events: &EventCounters,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    let consumers = [
        ("webhook", &events.webhooks),
        ("subscriber", &events.subscribers),
    ];
    let deliveries = consumers.into_iter().flat_map(|(consumer, delivery)| {
        let DeliveryCounters {
            delivered,
            failed,
            parked,
            lag: _,
        } = delivery;
        let outcomes = [
            ("delivered", delivered),
            ("attempt_failed", failed),
            ("failed", parked),
        ];
        outcomes.map(|(outcome, count)| {
            let labels = [("consumer", consumer), ("outcome", outcome)];
            (labels, count.get())
        })
    });
    let help = "Deliveries to webhook endpoints and to subscribers of this process, by outcome";
    counters(encoder, "deliveries", help, deliveries)?;
    let now_ms = Clock::system().now_ms();
    let lags = consumers
        .map(|(consumer, delivery)| (consumer, delivery.lag.ms_at(now_ms) as f64 / 1000.0));
    let help = "Age of the oldest undelivered event";
    let (lags, unit) = (by("consumer", lags), Some(&Unit::Seconds));
    gauges(encoder, "delivery_lag", help, unit, lags)
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
        counters.threads_moved.inc();
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
            "threadkeep_reaper_postponed_total 1",
            "threadkeep_reaper_lag_seconds 1.5",
            "threadkeep_reaper_stopped 0",
            r#"threadkeep_event_streams{of="thread"} 0"#,
            r#"threadkeep_event_streams{of="all"} 1"#,
            r#"threadkeep_deliveries_total{consumer="webhook",outcome="failed"} 3"#,
            r#"threadkeep_deliveries_total{consumer="subscriber",outcome="attempt_failed"} 0"#,
            r#"threadkeep_delivery_lag_seconds{consumer="webhook"} 0.0"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}

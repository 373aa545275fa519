use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::labels::Labels;
use threadkeep_domain::effects::{Effect, EffectState, Settled};
use threadkeep_domain::{Answer, Written};
use threadkeep_store::{Destroyed, Erased, Reaped};

/// Buckets in bytes, from an empty state to the maximum.
const BUCKETS: [f64; 10] = [
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    131_072.0,
    262_144.0,
    524_288.0,
    786_432.0,
    1_048_576.0,
];

#[derive(Debug)]
pub(super) struct ThreadMetrics {
    created: Counter,
    ended: Family<Labels<1>, Counter>,
    effects: Family<Labels<1>, Counter>,
    sizes: Histogram,
}

impl ThreadMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            created: Counter::default(),
            ended: Family::default(),
            effects: Family::default(),
            sizes: Histogram::new(BUCKETS),
        };
        let help = "Threads created by their first write";
        registry.register("threads_created", help, metrics.created.clone());
        let help = "Threads that ended, by reason; expired ones when the reaper ends them";
        registry.register("threads_ended", help, metrics.ended.clone());
        for reason in ["destroyed", "expired", "lost", "erased"] {
            metrics.end(reason, 0);
        }
        let help = "Tool calls by outcome";
        registry.register("effects", help, metrics.effects.clone());
        let (name, help) = ("state_size", "Size of states after writes");
        registry.register_with_unit(name, help, Unit::Bytes, metrics.sizes.clone());
        metrics
    }

    /// Counts a write unless it is a replay.
    pub(super) fn written(&self, written: &Written) {
        if written.replayed {
            return;
        }
        if written.stamp.version == 1 {
            self.created.inc();
        }
        self.sizes.observe(written.size_bytes as f64);
        for answer in &written.answers {
            if let Answer::Settled {
                state,
                repeated: false,
            } = answer
            {
                self.count_effect(*state);
            }
        }
    }

    /// Counts a begin if it was granted an attempt or found the effect in doubt.
    pub(super) fn begun(&self, effect: &Effect) {
        if matches!(effect.state, EffectState::Granted | EffectState::InDoubt) {
            self.count_effect(effect.state);
        }
    }

    pub(super) fn settled(&self, settled: &Settled) {
        if !settled.repeated {
            self.count_effect(settled.effect.state);
        }
    }

    fn count_effect(&self, state: EffectState) {
        let outcome = [("outcome", state.as_str())];
        self.effects.get_or_create(&outcome).inc();
    }

    /// Counts a thread that a request has ended, unless the answer replays that of an earlier request.
    pub(super) fn destroyed(&self, destroyed: Destroyed) {
        if destroyed.existed && !destroyed.replayed {
            self.end("destroyed", 1);
        }
    }

    pub(super) fn reaped(&self, reaped: Reaped) {
        self.end("expired", reaped.ended);
        self.end("lost", reaped.lost);
    }

    pub(super) fn erased(&self, erased: Erased) {
        self.end("erased", erased.threads);
    }

    fn end(&self, reason: &'static str, count: u64) {
        let ended = self.ended.get_or_create(&[("reason", reason)]);
        ended.inc_by(count);
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;
    use threadkeep_domain::Stamp;

    #[test]
    fn replayed_writes_are_not_counted_again() {
        let mut registry = Registry::default();
        let metrics = ThreadMetrics::register(&mut registry);
        let written = |version, replayed| Written {
            stamp: Stamp {
                version,
                ..Stamp::default()
            },
            size_bytes: 1_000,
            answers: Vec::new(),
            thread: None,
            replayed,
        };
        let destroyed = |existed, replayed| Destroyed { existed, replayed };

        for (version, replayed) in [(1, false), (1, true), (2, false)] {
            metrics.written(&written(version, replayed));
        }
        for (existed, replayed) in [(true, false), (true, true), (false, false)] {
            metrics.destroyed(destroyed(existed, replayed));
        }
        metrics.reaped(Reaped {
            ended: 2,
            lost: 1,
            moved: 5,
        });
        metrics.erased(Erased {
            threads: 3,
            archives: 7,
        });

        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "threads_created_total 1",
            r#"threads_ended_total{reason="destroyed"} 1"#,
            r#"threads_ended_total{reason="expired"} 2"#,
            r#"threads_ended_total{reason="lost"} 1"#,
            r#"threads_ended_total{reason="erased"} 3"#,
            "state_size_bytes_sum 2000.0",
            r#"state_size_bytes_bucket{le="256.0"} 0"#,
            r#"state_size_bytes_bucket{le="1024.0"} 2"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}

//! A server's circuit breaker. It opens when a connection attempt fails. It also opens when a call times out, a later
//! probe times out too, and no call is answered in between. A reply never opens it, even if the reply is an error,
//! because a server that replies is available.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::RedisError;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::fault::Fault;
use super::registry::ConnectionRegistry;
use threadkeep_store::CallRejected;

/// First and longest pause between probes.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

#[derive(Debug)]
pub(super) struct Breaker {
    name: String,
    /// While the server has no trouble, calls only read this flag.
    is_closed: AtomicBool,
    state: Mutex<State>,
    /// Announces the end of a probe.
    probed: Notify,
    registry: Arc<ConnectionRegistry>,
    /// Number of times that the server was found to be silent. Connections that were made before the most recent of
    /// these times are not used.
    silences: AtomicU64,
}

#[derive(Debug)]
struct State {
    trouble: Option<Trouble>,
    /// Time of the next probe, and the pause after that probe.
    due: Instant,
    pause: Duration,
    /// When the state was last determined.
    determined: Instant,
    probe: Option<ProbeInFlight>,
}

#[derive(Debug, Clone)]
enum Trouble {
    /// A call timed out, and no call has been answered since then.
    Suspected,
    /// Connection attempts have failed since the given time.
    Unreachable(Arc<RedisError>, Instant),
    /// Neither a call nor the probe was answered.
    Silent,
}

#[derive(Debug, Clone, Copy)]
struct ProbeInFlight {
    /// True if callers wait for this probe, because the result of the previous probe is too old.
    is_awaited: bool,
}

#[derive(Debug)]
pub(super) enum Verdict<'a> {
    Pass,
    /// The call must not be sent yet. If there is a future, the caller must await the future, which resolves when a
    /// probe ends, and then call `judge` again.
    Refused(Fault, Option<Notified<'a>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Begun {
    /// The probe decides whether the server is silent.
    pub(super) is_suspicion: bool,
    /// Existing connections remain in use.
    pub(super) spares_connections: bool,
}

impl Breaker {
    pub(super) fn new(name: String, registry: Arc<ConnectionRegistry>, now: Instant) -> Self {
        Self {
            name,
            is_closed: AtomicBool::new(true),
            state: Mutex::new(State {
                trouble: None,
                due: now,
                pause: PAUSES[0],
                determined: now,
                probe: None,
            }),
            probed: Notify::new(),
            registry,
            silences: AtomicU64::new(0),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    pub(super) fn is_open(&self) -> bool {
        let is_open = |state: &State| state.is_open();
        !self.is_closed() && is_open(&self.state())
    }

    pub(super) fn silences(&self) -> u64 {
        self.silences.load(Ordering::Relaxed)
    }

    pub(super) fn failed(&self, error: &RedisError, now: Instant) {
        let mut state = self.state();
        let error = Arc::new(error.clone());
        match &mut state.trouble {
            Some(Trouble::Unreachable(cause, _)) => *cause = error,
            Some(Trouble::Silent) => {}
            None | Some(Trouble::Suspected) => {
                tracing::warn!(server = self.name, %error, "Redis unreachable, circuit open");
                self.open(&mut state, Trouble::Unreachable(error, now), now);
            }
        }
    }

    pub(super) fn reached(&self) {
        if !self.is_closed() {
            self.close(&mut self.state());
        }
    }

    pub(super) fn answered(&self) {
        if self.is_closed() {
            return;
        }
        let mut state = self.state();
        // working connections do not prove that new connections can be made
        if !matches!(state.trouble, Some(Trouble::Unreachable(..))) {
            self.close(&mut state);
        }
    }

    pub(super) fn unanswered(&self) {
        let mut state = self.state();
        if state.trouble.is_none() {
            state.trouble = Some(Trouble::Suspected);
            self.is_closed.store(false, Ordering::Relaxed);
        }
    }

    /// Records that a probe has waited long enough to prove that the server is silent.
    pub(super) fn silent(&self, now: Instant) {
        let mut state = self.state();
        if matches!(state.trouble, Some(Trouble::Suspected)) {
            tracing::warn!(server = self.name, "Redis does not answer, circuit open");
            self.silences.fetch_add(1, Ordering::Relaxed);
            self.open(&mut state, Trouble::Silent, now);
        }
    }

    pub(super) fn begin(&self, now: Instant) -> Option<Begun> {
        let mut state = self.state();
        let trouble = state.trouble.as_ref()?;
        let is_suspicion = matches!(trouble, Trouble::Suspected);
        // existing connections remain in use unless the server is silent; a timed-out connection is already abandoned
        let spares_connections = !matches!(trouble, Trouble::Silent);
        if state.probe.is_some() || now < state.due {
            return None;
        }
        state.probe = Some(ProbeInFlight {
            is_awaited: now > state.determined.max(state.due) + PAUSES[1],
        });
        state.pause = match is_suspicion {
            // a server that answers other calls must not be probed constantly
            true => PAUSES[1],
            false => (2 * state.pause).min(PAUSES[1]),
        };
        state.due = now + state.pause;
        Some(Begun {
            is_suspicion,
            spares_connections,
        })
    }

    /// Ends the probe, even if it was cancelled.
    pub(super) fn end(&self, now: Instant) {
        let mut state = self.state();
        state.probe = None;
        state.determined = now;
        drop(state);
        self.probed.notify_waiters();
    }

    pub(super) fn judge(&self, has_connection: bool) -> Verdict<'_> {
        let state = self.state();
        let (why, since) = match &state.trouble {
            None | Some(Trouble::Suspected) => return Verdict::Pass,
            Some(Trouble::Unreachable(..)) if has_connection => return Verdict::Pass,
            Some(Trouble::Unreachable(error, since)) => (
                CallRejected::Unreachable(Arc::clone(error) as _),
                Some(*since),
            ),
            Some(Trouble::Silent) => (CallRejected::Silent, None),
        };
        let awaited = state.probe.filter(|probe| probe.is_awaited);
        // the state is locked, so the probe cannot end before this future exists, and the future always resolves
        let probed = awaited.map(|_| self.probed.notified());
        Verdict::Refused(Fault::Refused { why, since }, probed)
    }

    fn open(&self, state: &mut State, trouble: Trouble, now: Instant) {
        state.trouble = Some(trouble);
        state.pause = PAUSES[0];
        state.due = now + PAUSES[0];
        state.determined = now;
        self.is_closed.store(false, Ordering::Relaxed);
        self.registry.opened();
    }

    fn close(&self, state: &mut State) {
        if state.is_open() {
            tracing::info!(server = self.name, "Redis answers again, circuit closed");
        }
        state.trouble = None;
        self.is_closed.store(true, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_open(&self) -> bool {
        !matches!(self.trouble, None | Some(Trouble::Suspected))
    }
}

#[cfg(test)]
mod tests {
    use redis::ErrorKind;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn breaker() -> (Breaker, Instant) {
        let now = Instant::now();
        (Breaker::new("redis".into(), Arc::default(), now), now)
    }

    fn refusal() -> RedisError {
        (ErrorKind::Io, "connection refused").into()
    }

    fn passes(breaker: &Breaker, has_connection: bool) -> bool {
        matches!(breaker.judge(has_connection), Verdict::Pass)
    }

    /// Returns when probes begin within `time`, relative to `now`, if each probe fails immediately.
    fn probes(breaker: &Breaker, mut now: Instant, time: Duration) -> Vec<Duration> {
        let start = now;
        let mut begun = Vec::new();
        while now < start + time {
            if breaker.begin(now).is_some() {
                begun.push(now - start);
                breaker.failed(&refusal(), now);
                breaker.end(now);
            }
            now += Duration::from_millis(10);
        }
        begun
    }

    #[test]
    fn calls_to_an_unreachable_server_are_rejected_with_the_cause() {
        let (breaker, now) = breaker();
        assert!(breaker.is_closed() && passes(&breaker, false));

        breaker.failed(&refusal(), now);

        assert!(breaker.is_open());
        let Verdict::Refused(fault, None) = breaker.judge(false) else {
            panic!("the call passes");
        };
        let Fault::Refused {
            why: CallRejected::Unreachable(cause),
            since: Some(since),
        } = fault
        else {
            panic!("{fault:?}");
        };
        assert!(cause.to_string().contains("connection refused"));
        assert_eq!(since, now);
    }

    #[test]
    fn a_working_connection_stays_in_use_while_new_connections_fail() {
        let (breaker, now) = breaker();
        breaker.failed(&refusal(), now);

        assert!(passes(&breaker, true));
        breaker.answered();

        assert!(breaker.is_open());
        let begun = breaker.begin(now + SECOND).unwrap();
        assert!(begun.spares_connections && !begun.is_suspicion);
    }

    #[test]
    fn probes_run_one_at_a_time_with_growing_pauses() {
        let (breaker, now) = breaker();
        breaker.failed(&refusal(), now);

        let begun = probes(&breaker, now, 4 * SECOND);

        let ms: Vec<_> = begun.iter().map(Duration::as_millis).collect();
        assert_eq!(ms, [100, 300, 700, 1_500, 2_500, 3_500]);
        assert!(breaker.begin(now + 5 * SECOND).is_some());
        assert!(breaker.begin(now + 50 * SECOND).is_none());
    }

    #[test]
    fn a_new_connection_closes_the_breaker_and_resets_the_pauses() {
        let (breaker, now) = breaker();
        breaker.failed(&refusal(), now);
        probes(&breaker, now, 4 * SECOND);

        breaker.reached();

        assert!(breaker.is_closed() && passes(&breaker, false));
        let later = now + 10 * SECOND;
        breaker.failed(&refusal(), later);
        assert_eq!(probes(&breaker, later, SECOND / 5), [SECOND / 10]);
    }

    #[test]
    fn an_unanswered_call_raises_a_suspicion_and_rejects_no_calls() {
        let (breaker, now) = breaker();

        breaker.unanswered();
        let begun = breaker.begin(now).unwrap();

        assert!(begun.is_suspicion && !breaker.is_open());
        assert!(passes(&breaker, false));
        // a reply to a different call shows that the server is available, and that only the first call is slow
        breaker.answered();
        breaker.silent(now + SECOND);
        assert!(breaker.is_closed());
        // a series of slow calls must not cause a storm of probes
        breaker.end(now);
        breaker.unanswered();
        assert!(breaker.begin(now + SECOND / 2).is_none());
    }

    #[test]
    fn calls_to_a_silent_server_are_rejected_on_all_connections() {
        let (breaker, now) = breaker();
        breaker.unanswered();
        breaker.begin(now).unwrap();

        breaker.silent(now + SECOND);

        assert!(breaker.is_open() && !passes(&breaker, true));
        assert_eq!(breaker.silences(), 1);
        // no second probe begins
        assert!(breaker.begin(now + 5 * SECOND).is_none());
        breaker.end(now + 5 * SECOND);
        let begun = breaker.begin(now + 5 * SECOND).unwrap();
        assert!(!begun.spares_connections);
        // callers do not wait, because the state was determined just now
        assert!(matches!(breaker.judge(true), Verdict::Refused(_, None)));
        breaker.answered();
        assert!(passes(&breaker, true));
    }

    #[tokio::test]
    async fn the_first_caller_after_a_long_pause_waits_for_the_probe() {
        let (breaker, now) = breaker();
        breaker.failed(&refusal(), now);
        breaker.begin(now + SECOND / 10).unwrap();
        assert!(matches!(breaker.judge(false), Verdict::Refused(_, None)));
        breaker.end(now + SECOND);

        breaker.begin(now + 60 * SECOND).unwrap();

        let Verdict::Refused(_, Some(probed)) = breaker.judge(false) else {
            panic!("the caller does not wait");
        };
        // both happen before the first poll
        breaker.reached();
        breaker.end(now + 60 * SECOND);
        probed.await;
        assert!(passes(&breaker, false));
    }

    #[test]
    fn openings_are_counted_but_repeated_failures_are_not() {
        let registry = Arc::<ConnectionRegistry>::default();
        let now = Instant::now();
        let breaker = Breaker::new("redis".into(), Arc::clone(&registry), now);

        breaker.failed(&refusal(), now);
        breaker.failed(&refusal(), now);
        breaker.reached();
        breaker.reached();
        breaker.failed(&refusal(), now);

        assert_eq!(registry.count().opened, 2);
    }
}

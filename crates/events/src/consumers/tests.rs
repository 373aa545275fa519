use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::*;
use crate::EventSettings;
use threadkeep_domain::{Completed, Event, EventKind, EventType, EventTypes, ThreadId};
use threadkeep_store::{Backend, Clock, EventLog as _, Ledgers as _};
use threadkeep_store_memory::MemoryStore;

const NAME: &str = "app.test";

/// The lease is long, so that a replica on a busy machine does not lose it and deliver an event twice.
const FAST: Timing = Timing {
    lease: Duration::from_secs(30),
    renew: Duration::from_millis(50),
    first_delay: Duration::from_millis(10),
    batch: Duration::from_millis(5),
    idle_batch: Duration::from_millis(5),
    tick: Duration::from_millis(20),
    shutdown: Duration::from_millis(200),
    ..Timing::DEFAULT
};

type Accepts = Box<dyn Fn(&Event, usize) -> bool + Send + Sync>;

struct Recorder {
    types: EventTypes,
    /// Decides whether to accept an event on a given attempt. The first attempt is number 1.
    accepts: Accepts,
    attempts: Mutex<BTreeMap<EventId, usize>>,
    accepted: Mutex<Vec<Event>>,
    in_flight: AtomicUsize,
    in_flight_max: AtomicUsize,
    gate: Semaphore,
}

impl Recorder {
    fn new(accepts: impl Fn(&Event, usize) -> bool + Send + Sync + 'static) -> Arc<Self> {
        Self::gated(accepts, Semaphore::MAX_PERMITS)
    }

    fn gated(
        accepts: impl Fn(&Event, usize) -> bool + Send + Sync + 'static,
        permits: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            types: [EventType::SessionCompleted].into_iter().collect(),
            accepts: Box::new(accepts),
            attempts: Mutex::default(),
            accepted: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            in_flight_max: AtomicUsize::new(0),
            gate: Semaphore::new(permits),
        })
    }

    fn accepted(&self) -> Vec<Event> {
        self.accepted.lock().unwrap().clone()
    }

    fn count(&self) -> usize {
        self.accepted.lock().unwrap().len()
    }

    fn attempts(&self) -> usize {
        self.attempts.lock().unwrap().values().sum()
    }
}

#[async_trait]
impl Handler for Recorder {
    fn types(&self) -> EventTypes {
        self.types
    }

    async fn deliver(&self, event: &Event) -> Result<(), Failure> {
        let running = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.in_flight_max.fetch_max(running, Ordering::Relaxed);
        self.gate.acquire().await.unwrap().forget();
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        let attempt = {
            let mut attempts = self.attempts.lock().unwrap();
            let attempt = attempts.entry(event.id).or_default();
            *attempt += 1;
            *attempt
        };
        if !(self.accepts)(event, attempt) {
            return Err(Failure::new("rejected by the test"));
        }
        self.accepted.lock().unwrap().push(event.clone());
        Ok(())
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct Bench {
    store: MemoryStore,
    /// The clock that leases depend on.
    store_clock: Clock,
    clock: Clock,
}

impl Bench {
    fn new() -> Self {
        let store_clock = Clock::system();
        Self {
            store: MemoryStore::new(store_clock.clone()),
            store_clock,
            clock: Clock::system(),
        }
    }

    fn replica(&self, timing: Timing) -> Events {
        let settings = EventSettings {
            poll_every: Duration::from_millis(5),
            timing,
            clock: self.clock.clone(),
            ..EventSettings::default()
        };
        let backend: Arc<dyn Backend> = Arc::new(self.store.clone());
        Events::start(backend, settings)
    }

    async fn consume(&self, recorder: &Arc<Recorder>) -> Events {
        self.consume_by(recorder, FAST).await
    }

    async fn consume_by(&self, recorder: &Arc<Recorder>, timing: Timing) -> Events {
        let events = self.replica(timing);
        events.open_consumer(NAME).await.unwrap();
        let handler = Arc::clone(recorder) as _;
        events
            .start_consumer(NAME, Purpose::Subscriber, handler)
            .unwrap();
        events
    }

    async fn log(&self, thread: ThreadId, number: u64) {
        let completed = Completed {
            session: "sess_".into(),
            status: 200,
            duration_ms: number,
        };
        self.store.log_completed(&thread, &completed).await.unwrap();
    }

    async fn pending(&self) -> usize {
        let ledger = self.store.load_ledger(NAME).await.unwrap();
        ledger.unwrap().pending.len()
    }

    async fn is_settled(&self) -> bool {
        let heads = self.store.log_heads().await.unwrap();
        let ledger = self.store.load_ledger(NAME).await.unwrap().unwrap();
        ledger.pending.is_empty() && ledger.cursors == heads.positions
    }
}

fn threads<const N: usize>() -> [ThreadId; N] {
    std::array::from_fn(|_| ThreadId::random())
}

fn number(event: &Event) -> u64 {
    match &event.kind {
        EventKind::Completed(completed) => completed.duration_ms,
        _ => panic!("{event:?}"),
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn until<F: Future<Output = bool>>(condition: impl Fn() -> F) {
    let polling = async {
        while !condition().await {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(120), polling)
        .await
        .expect("the condition should become true");
}

#[tokio::test]
async fn each_event_is_delivered_once_and_in_order_despite_failures() {
    let bench = Bench::new();
    let threads = threads::<20>();
    let recorder = Recorder::new(|event, attempt| !number(event).is_multiple_of(3) || attempt > 2);
    let _events = bench.consume(&recorder).await;

    for number in 0..20 {
        for thread in threads {
            bench.log(thread, number).await;
        }
    }
    until(async || recorder.count() >= 400).await;
    until(async || bench.is_settled().await).await;

    let accepted = recorder.accepted();
    assert_eq!(accepted.len(), 400);
    for thread in threads {
        let of_thread = accepted
            .iter()
            .filter(|event| event.thread() == Some(&thread));
        assert!(of_thread.map(number).eq(0..20));
    }
}

#[tokio::test]
async fn threads_are_delivered_concurrently_up_to_a_limit() {
    let bench = Bench::new();
    let recorder = Recorder::gated(|_, _| true, 0);
    let _events = bench.consume(&recorder).await;

    for thread in threads::<200>() {
        bench.log(thread, 1).await;
    }
    until(async || recorder.in_flight.load(Ordering::Relaxed) >= 40).await;
    recorder.gate.add_permits(1_000);
    until(async || recorder.count() == 200).await;

    let in_flight_max = recorder.in_flight_max.load(Ordering::Relaxed);
    assert!(in_flight_max <= 64, "{in_flight_max}");
}

#[tokio::test]
async fn a_failing_thread_does_not_block_others() {
    let bench = Bench::new();
    let [bad, good] = threads();
    let recorder = Recorder::new(move |event, _| event.thread() != Some(&bad));
    let events = bench.consume(&recorder).await;

    for number in 0..50 {
        bench.log(bad, number).await;
        bench.log(good, number).await;
    }
    until(async || recorder.count() == 50).await;

    assert!(
        recorder
            .accepted()
            .iter()
            .all(|event| event.thread() == Some(&good))
    );
    until(async || bench.pending().await == 50).await;
    assert!(events.counters().subscribers.failed.get() > 0);
}

#[tokio::test]
async fn the_lag_is_reported_until_waiting_events_are_delivered() {
    let bench = Bench::new();
    let [one, other] = threads();
    let is_broken = Arc::new(AtomicBool::new(true));
    let broken = Arc::clone(&is_broken);
    let recorder = Recorder::new(move |_, _| !broken.load(Ordering::Relaxed));
    let events = bench.consume(&recorder).await;
    let lag_ms = || {
        events
            .counters()
            .subscribers
            .lag
            .ms_at(bench.clock.now_ms())
    };
    assert_eq!(lag_ms(), 0);

    bench.log(one, 0).await;
    until(async || recorder.attempts() > 0).await;
    bench.clock.advance(Duration::from_secs(60));
    bench.log(other, 0).await;
    until(async || bench.pending().await == 2).await;

    assert!(lag_ms() >= 60_000, "{}", lag_ms());
    assert_eq!(events.counters().webhooks.lag.ms_at(u64::MAX - 1), 0);

    is_broken.store(false, Ordering::Relaxed);
    until(async || recorder.count() == 2).await;
    until(async || lag_ms() == 0).await;
}

#[tokio::test]
async fn events_that_fail_for_a_day_are_parked_and_can_be_replayed() {
    let bench = Bench::new();
    let [thread] = threads();
    let is_broken = Arc::new(AtomicBool::new(true));
    let broken = Arc::clone(&is_broken);
    let recorder = Recorder::new(move |_, _| !broken.load(Ordering::Relaxed));
    let events = bench.consume(&recorder).await;
    for number in 0..3 {
        bench.log(thread, number).await;
    }
    until(async || bench.pending().await == 3).await;

    until(async || recorder.attempts() > 2).await;
    bench.clock.advance(Timing::DEFAULT.give_up_after);
    // the other two events are parked after one attempt, because they are old and the consumer is still failing
    until(async || events.counters().subscribers.parked.get() == 3).await;
    until(async || bench.pending().await == 0).await;

    let first = events.parked(NAME, None, 2).await.unwrap();
    let second = events.parked(NAME, first.next, 2).await.unwrap();
    assert_eq!((first.parked.len(), second.parked.len()), (2, 1));
    assert_eq!(second.next, None);
    for parked in first.parked.iter().chain(&second.parked) {
        assert_eq!(parked.last_error, "rejected by the test");
        assert!(parked.first_attempt_ms > 0);
    }
    assert!(first.parked[0].attempts > 2);
    assert_eq!(first.parked[1].attempts, 1);

    is_broken.store(false, Ordering::Relaxed);
    bench.log(thread, 3).await;
    until(async || recorder.count() == 1).await;
    let one = [first.parked[1].event.id];
    assert_eq!(events.replay(NAME, Some(&one)).await.unwrap(), 1);
    assert_eq!(events.replay(NAME, Some(&one)).await.unwrap(), 0);
    until(async || recorder.count() == 2).await;
    assert_eq!(events.replay(NAME, None).await.unwrap(), 2);
    until(async || recorder.count() == 4).await;
    assert!(recorder.accepted().iter().map(number).eq([3, 1, 0, 2]));
    assert!(
        events
            .parked(NAME, None, 9)
            .await
            .unwrap()
            .parked
            .is_empty()
    );
}

#[tokio::test]
async fn a_replay_is_noticed_by_the_replica_that_holds_the_slot() {
    let bench = Bench::new();
    let [thread] = threads();
    let recorder = Recorder::new(|_, attempt| attempt > 1);
    let park_immediately = Timing {
        give_up_after: Duration::ZERO,
        ..FAST
    };
    let events = bench.consume_by(&recorder, park_immediately).await;
    bench.log(thread, 1).await;
    until(async || events.counters().subscribers.parked.get() == 1).await;
    until(async || bench.is_settled().await).await;

    let other_replica = bench.replica(FAST);
    assert_eq!(other_replica.replay(NAME, None).await.unwrap(), 1);

    until(async || recorder.count() == 1).await;
}

#[test]
fn deliveries_not_stored_before_a_crash_are_repeated() {
    let bench = Bench::new();
    let ids = threads::<10>();
    let recorder = Recorder::new(|_, _| true);
    let never = Timing {
        batch: Duration::from_secs(3_600),
        ..FAST
    };

    // stops without cleanup, as in a crash
    let doomed = runtime();
    doomed.block_on(async {
        let events = bench.consume_by(&recorder, never).await;
        for thread in ids {
            bench.log(thread, 1).await;
        }
        until(async || recorder.count() == 10).await;
        std::mem::forget(events);
    });
    doomed.shutdown_background();
    bench.store_clock.advance(FAST.lease);

    let next = runtime();
    next.block_on(async {
        let _events = bench.consume(&recorder).await;
        until(async || bench.is_settled().await).await;
    });
    let accepted = recorder.accepted();
    let distinct: HashSet<_> = accepted.iter().map(|event| event.id).collect();
    assert_eq!((accepted.len(), distinct.len()), (20, 10));
}

#[tokio::test]
async fn deliveries_finished_during_shutdown_are_not_repeated() {
    let bench = Bench::new();
    let recorder = Recorder::gated(|_, _| true, 0);
    let never = Timing {
        batch: Duration::from_secs(3_600),
        shutdown: Duration::from_secs(30),
        ..FAST
    };
    let events = bench.consume_by(&recorder, never).await;
    for thread in threads::<10>() {
        bench.log(thread, 1).await;
    }
    until(async || recorder.in_flight.load(Ordering::Relaxed) == 10).await;

    let stopping = events.clone();
    let stopped = tokio::spawn(async move { stopping.shutdown().await });
    until(async || events.stopped().is_cancelled()).await;
    recorder.gate.add_permits(100);
    stopped.await.unwrap();

    assert!(bench.is_settled().await);
    let _next = bench.consume(&recorder).await;
    bench.log(ThreadId::random(), 2).await;
    until(async || recorder.count() >= 11).await;
    until(async || bench.is_settled().await).await;
    assert_eq!(recorder.count(), 11);
}

#[tokio::test]
async fn replicas_share_the_work_and_deliver_each_event_once() {
    let bench = Bench::new();
    let recorders = [Recorder::new(|_, _| true), Recorder::new(|_, _| true)];
    let _one = bench.consume(&recorders[0]).await;
    let _two = bench.consume(&recorders[1]).await;
    // once each replica has received a new event, both replicas hold slots
    until(async || {
        bench.log(ThreadId::random(), 0).await;
        sleep(Duration::from_millis(20)).await;
        recorders.iter().all(|recorder| recorder.count() > 0)
    })
    .await;
    // wait until each replica has started to work on its new slots
    sleep(FAST.renew * 2).await;
    until(async || bench.is_settled().await).await;
    let before = recorders.each_ref().map(|recorder| recorder.count());

    let ids = threads::<100>();
    for number in 0..5 {
        for thread in ids {
            bench.log(thread, number).await;
        }
    }
    until(async || bench.is_settled().await).await;

    let accepted: Vec<_> = recorders
        .iter()
        .zip(before)
        .flat_map(|(recorder, before)| recorder.accepted().split_off(before))
        .collect();
    assert_eq!(accepted.len(), 500);
    let distinct: HashSet<_> = accepted.iter().map(|event| event.id).collect();
    assert_eq!(distinct.len(), 500);
    for (recorder, before) in recorders.iter().zip(before) {
        assert!(recorder.count() > before, "one replica did all the work");
    }
}

#[tokio::test]
async fn another_replica_takes_over_the_work_of_a_crashed_one() {
    let bench = Bench::new();
    let hung = Recorder::gated(|_, _| true, 0);
    let alive = Recorder::new(|_, _| true);
    let doomed = std::thread::spawn({
        let (hung, bench) = (Arc::clone(&hung), bench.clone());
        move || {
            let runtime = runtime();
            runtime.block_on(async {
                let events = bench.consume(&hung).await;
                for thread in threads::<50>() {
                    bench.log(thread, 1).await;
                }
                until(async || hung.in_flight.load(Ordering::Relaxed) > 0).await;
                std::mem::forget(events);
            });
            runtime.shutdown_background();
        }
    });
    tokio::task::spawn_blocking(|| doomed.join().unwrap())
        .await
        .unwrap();
    bench.store_clock.advance(FAST.lease);

    let _events = bench.consume(&alive).await;

    until(async || alive.count() == 50).await;
    assert_eq!(hung.count(), 0);
}

#[tokio::test]
async fn a_replica_that_lost_its_lease_stores_nothing() {
    let bench = Bench::new();
    let recorder = Recorder::gated(|_, _| true, 0);
    let long = Timing {
        renew: Duration::from_secs(3_600),
        lease: Duration::from_secs(3_600),
        ..FAST
    };
    let _events = bench.consume_by(&recorder, long).await;
    bench.log(ThreadId::random(), 1).await;
    until(async || recorder.in_flight.load(Ordering::Relaxed) == 1).await;

    let other = Recorder::new(|_, _| true);
    bench.store_clock.advance(Duration::from_secs(3_601));
    let _other = bench.consume(&other).await;
    until(async || other.count() == 1).await;
    until(async || bench.is_settled().await).await;
    recorder.gate.add_permits(1);
    until(async || recorder.count() == 1).await;

    // no replica repeats the deliveries, and later events are not affected
    for thread in threads::<50>() {
        bench.log(thread, 2).await;
    }
    until(async || other.count() == 51).await;
}

#[tokio::test]
async fn a_failing_consumer_stops_reading_the_log() {
    let bench = Bench::new();
    let is_broken = Arc::new(AtomicBool::new(true));
    let broken = Arc::clone(&is_broken);
    let recorder = Recorder::new(move |_, _| !broken.load(Ordering::Relaxed));
    let lazy = Timing {
        first_delay: Duration::from_millis(300),
        longest_delay: Duration::from_millis(300),
        ..FAST
    };
    let _events = bench.consume_by(&recorder, lazy).await;

    const COUNT: usize = 8_000;
    for number in 0..COUNT {
        bench.log(ThreadId::random(), number as u64).await;
    }
    until(async || bench.pending().await >= 4_000).await;
    sleep(lazy.first_delay).await;
    let pending = bench.pending().await;
    // each slot stops reading at 1,000 pending events, but may already have read 256 more
    assert!(pending <= 4 * (1_000 + 256), "{pending}");
    is_broken.store(false, Ordering::Relaxed);

    until(async || recorder.count() >= COUNT).await;
    until(async || bench.is_settled().await).await;
    assert_eq!(recorder.count(), COUNT);
}

#[tokio::test]
async fn a_handler_that_panics_is_called_again() {
    let bench = Bench::new();
    let recorder = Recorder::new(|_, attempt| {
        assert!(attempt > 1, "a panic that the test wants");
        true
    });
    let _events = bench.consume(&recorder).await;

    bench.log(ThreadId::random(), 1).await;

    until(async || recorder.count() == 1).await;
    until(async || bench.is_settled().await).await;
}

#[tokio::test]
async fn only_new_events_of_the_requested_types_are_delivered() {
    let bench = Bench::new();
    let thread = ThreadId::random();
    bench.log(thread, 1).await;
    let recorder = Recorder::new(|_, _| true);
    let _events = bench.consume(&recorder).await;

    let policy = threadkeep_domain::ThreadPolicy::THREAD;
    let write = threadkeep_domain::Write::new(&policy);
    threadkeep_store::Store::write(&bench.store, &thread, &write)
        .await
        .unwrap();
    bench.log(thread, 2).await;
    until(async || bench.is_settled().await).await;

    assert!(recorder.accepted().iter().map(number).eq([2]));
}

#[tokio::test]
async fn dropping_a_consumer_deletes_its_ledger() {
    let bench = Bench::new();
    let recorder = Recorder::new(|_, _| false);
    let events = bench.consume(&recorder).await;
    bench.log(ThreadId::random(), 1).await;
    until(async || bench.pending().await == 1).await;

    events.drop_consumer(NAME).await.unwrap();
    events.shutdown().await;

    assert!(bench.store.load_ledger(NAME).await.unwrap().is_none());
    assert!(bench.store.consumers().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_deleted_ledger_is_recreated() {
    let bench = Bench::new();
    let recorder = Recorder::new(|_, _| true);
    let _events = bench.consume(&recorder).await;
    bench.store.drop_ledger(NAME).await.unwrap();

    until(async || {
        bench.log(ThreadId::random(), 1).await;
        recorder.count() > 0
    })
    .await;
}

#[tokio::test]
async fn a_consumer_name_is_unique_within_a_replica() {
    let bench = Bench::new();
    let recorder = Recorder::new(|_, _| true);
    let events = bench.consume(&recorder).await;

    let handler = Arc::clone(&recorder) as _;
    let again = events.start_consumer(NAME, Purpose::Subscriber, handler);

    assert_eq!(again, Err(Taken));
}

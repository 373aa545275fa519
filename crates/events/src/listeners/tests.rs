use super::*;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{EventId, EventKind, Json, Life, Stamp};

const BUCKET: u16 = 7;

fn at(ms: u64) -> Position {
    Position { ms, seq: 0 }
}

fn event(thread: ThreadId, ms: u64) -> Event {
    Event {
        id: EventId {
            bucket: BUCKET,
            position: at(ms),
        },
        subject: ScopeId::Thread(thread),
        time_ms: ms,
        life: Life(1),
        version: 1,
        sequence: 1,
        trace: None,
        kind: EventKind::Created {
            keys: None,
            restored: false,
        },
    }
}

async fn received(listener: &mut Listener) -> Vec<u64> {
    let mut times = Vec::new();
    while !listener.messages.is_empty()
        && let Some(Message::Event(event)) = listener.recv().await
    {
        times.push(event.id.position.ms);
    }
    times
}

#[tokio::test]
async fn a_log_is_read_from_the_position_of_its_first_listener() {
    let listeners = Arc::new(Listeners::default());
    let thread = ThreadId::random();
    let mut one = listeners.listen(BUCKET, thread);
    let mut other = listeners.listen(BUCKET, ThreadId::random());
    assert!(
        listeners.logs_to_read().is_empty(),
        "no start position is set"
    );

    // the first listener starts last
    other.start(at(20));
    one.start(at(10));
    assert_eq!(listeners.logs_to_read(), [(BUCKET, at(10))]);

    // the log is read from position 10, so events that were read from position 20 are not delivered
    listeners.deliver_to_listeners(BUCKET, at(20), vec![event(thread, 21)]);
    assert_eq!(listeners.logs_to_read(), [(BUCKET, at(10))]);
    let both = vec![event(thread, 11), event(thread, 21)];
    listeners.deliver_to_listeners(BUCKET, at(10), both);
    assert_eq!(received(&mut one).await, [11, 21]);
    assert_eq!(one.received_up_to(), Some(at(21)));

    // a later listener joins a log that is already read
    let mut late = listeners.listen(BUCKET, thread);
    late.start(at(5));
    assert_eq!(listeners.logs_to_read(), [(BUCKET, at(21))]);
    drop((one, other, late));
    assert!(listeners.logs_to_read().is_empty());
    assert!(listeners.threads().is_empty());
}

#[tokio::test]
async fn received_up_to_is_none_while_an_event_waits() {
    let listeners = Arc::new(Listeners::default());
    let thread = ThreadId::random();
    let mut listener = listeners.listen(BUCKET, thread);
    listener.start(at(1));
    listeners.deliver_to_listeners(BUCKET, at(1), vec![event(thread, 2)]);

    assert_eq!(listener.received_up_to(), None);
    assert!(listener.recv().await.is_some());
    assert_eq!(listener.received_up_to(), Some(at(2)));
}

#[tokio::test]
async fn a_slow_listener_is_disconnected_before_it_holds_many_key_names() {
    let listeners = Arc::new(Listeners::default());
    let thread = ThreadId::random();
    let mut slow = listeners.listen(BUCKET, thread);
    let mut quick = listeners.listen(BUCKET, thread);
    slow.start(at(1));
    let names = Json::from_strings(&["k".repeat(NAMED_KEY_BYTES_MAX - 4)]);
    let mut disconnected = 0;
    for ms in 2..20 {
        let mut event = event(thread, ms);
        event.kind = EventKind::Updated {
            keys: Some(names.clone()),
            metadata: false,
        };
        disconnected += listeners.deliver_to_listeners(BUCKET, at(ms - 1), vec![event]);
        assert_eq!(received(&mut quick).await, [ms]);
    }

    assert_eq!(disconnected, 1);
    assert_eq!(received(&mut slow).await, [2, 3, 4, 5]);
    assert!(slow.recv().await.is_none());
}

#[tokio::test]
async fn listeners_of_a_log_that_lost_events_are_disconnected() {
    let listeners = Arc::new(Listeners::default());
    let mut one = listeners.listen(BUCKET, ThreadId::random());
    let mut other = listeners.listen(BUCKET, ThreadId::random());
    one.start(at(1));

    assert_eq!(
        listeners.disconnect_all(BUCKET, at(0), at(5)),
        0,
        "the log will be read again"
    );
    assert_eq!(listeners.disconnect_all(BUCKET, at(1), at(5)), 2);

    assert!(one.recv().await.is_none());
    assert!(other.recv().await.is_none());
    assert_eq!(listeners.logs_to_read(), [(BUCKET, at(5))]);
}

#[tokio::test]
async fn dropping_one_listener_does_not_affect_the_others() {
    let listeners = Arc::new(Listeners::default());
    let thread = ThreadId::random();
    let mut many: Vec<_> = (0..3).map(|_| listeners.listen(BUCKET, thread)).collect();
    many[0].start(at(1));

    drop(many.remove(1));
    listeners.deliver_to_listeners(BUCKET, at(1), vec![event(thread, 2)]);

    for listener in &mut many {
        assert_eq!(received(listener).await, [2]);
    }
}

#[tokio::test]
async fn listeners_are_notified_of_a_lapsed_watch() {
    let listeners = Arc::new(Listeners::default());
    let thread = ThreadId::random();
    let mut listener = listeners.listen(BUCKET, thread);
    let now = Instant::now();
    let watched = Watched {
        stamp: Stamp::default(),
        next_seq: 1,
        head: at(1),
    };

    let long = Duration::from_secs(60);
    listeners.record_watch(BUCKET, &thread, now, long, watched);
    assert!(
        listener.messages.try_recv().is_err(),
        "the watch has not lapsed"
    );

    listeners.record_watch(BUCKET, &thread, now, Duration::ZERO, watched);
    let Some(Message::WatchLapsed(reported)) = listener.recv().await else {
        panic!("the lapse was not reported");
    };
    assert_eq!(reported, watched);
}

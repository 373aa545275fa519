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

async fn heard(listener: &mut Listener) -> Vec<u64> {
    let mut heard = Vec::new();
    while !listener.heard.is_empty()
        && let Some(Heard::Event(event)) = listener.hear().await
    {
        heard.push(event.id.position.ms);
    }
    heard
}

#[tokio::test]
async fn a_log_is_wanted_from_where_the_first_listener_began() {
    let listeners = Arc::new(Listeners::default());
    let thread = ThreadId::random();
    let mut one = listeners.listen(BUCKET, thread);
    let mut other = listeners.listen(BUCKET, ThreadId::random());
    assert!(listeners.wanted().is_empty(), "nobody knows from where on");

    // the first listener starts last
    other.start(at(20));
    one.start(at(10));
    assert_eq!(listeners.wanted(), [(BUCKET, at(10))]);

    // the log is wanted from position 10, so events that were read from position 20 are not delivered
    listeners.deliver_to_listeners(BUCKET, at(20), vec![event(thread, 21)]);
    assert_eq!(listeners.wanted(), [(BUCKET, at(10))]);
    let both = vec![event(thread, 11), event(thread, 21)];
    listeners.deliver_to_listeners(BUCKET, at(10), both);
    assert_eq!(heard(&mut one).await, [11, 21]);
    assert_eq!(one.received_up_to(), Some(at(21)));

    // a later listener joins a log that is already read
    let mut late = listeners.listen(BUCKET, thread);
    late.start(at(5));
    assert_eq!(listeners.wanted(), [(BUCKET, at(21))]);
    drop((one, other, late));
    assert!(listeners.wanted().is_empty());
    assert!(listeners.threads().is_empty());
}

#[tokio::test]
async fn all_is_not_heard_while_something_waits() {
    let listeners = Arc::new(Listeners::default());
    let thread = ThreadId::random();
    let mut listener = listeners.listen(BUCKET, thread);
    listener.start(at(1));
    listeners.deliver_to_listeners(BUCKET, at(1), vec![event(thread, 2)]);

    assert_eq!(listener.received_up_to(), None);
    assert!(listener.hear().await.is_some());
    assert_eq!(listener.received_up_to(), Some(at(2)));
}

#[tokio::test]
async fn a_listener_that_takes_nothing_holds_few_names() {
    let listeners = Arc::new(Listeners::default());
    let thread = ThreadId::random();
    let mut slow = listeners.listen(BUCKET, thread);
    let mut quick = listeners.listen(BUCKET, thread);
    slow.start(at(1));
    let names = Json::from_strings(&["k".repeat(NAMED_KEY_BYTES_MAX - 4)]);
    let mut cut = 0;
    for ms in 2..20 {
        let mut event = event(thread, ms);
        event.kind = EventKind::Updated {
            keys: Some(names.clone()),
            metadata: false,
        };
        cut += listeners.deliver_to_listeners(BUCKET, at(ms - 1), vec![event]);
        assert_eq!(heard(&mut quick).await, [ms]);
    }

    assert_eq!(cut, 1);
    assert_eq!(heard(&mut slow).await, [2, 3, 4, 5]);
    assert!(slow.hear().await.is_none());
}

#[tokio::test]
async fn listeners_to_a_log_that_lost_events_unread_are_cut_off() {
    let listeners = Arc::new(Listeners::default());
    let mut one = listeners.listen(BUCKET, ThreadId::random());
    let mut other = listeners.listen(BUCKET, ThreadId::random());
    one.start(at(1));

    assert_eq!(
        listeners.cut_off(BUCKET, at(0), at(5)),
        0,
        "it is read once more"
    );
    assert_eq!(listeners.cut_off(BUCKET, at(1), at(5)), 2);

    assert!(one.hear().await.is_none());
    assert!(other.hear().await.is_none());
    assert_eq!(listeners.wanted(), [(BUCKET, at(5))]);
}

#[tokio::test]
async fn one_of_many_listeners_to_a_thread_leaves_the_others() {
    let listeners = Arc::new(Listeners::default());
    let thread = ThreadId::random();
    let mut many: Vec<_> = (0..3).map(|_| listeners.listen(BUCKET, thread)).collect();
    many[0].start(at(1));

    drop(many.remove(1));
    listeners.deliver_to_listeners(BUCKET, at(1), vec![event(thread, 2)]);

    for listener in &mut many {
        assert_eq!(heard(listener).await, [2]);
    }
}

#[tokio::test]
async fn listeners_hear_of_a_time_without_a_watch() {
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
    listeners.note_watched(BUCKET, &thread, now, long, watched);
    assert!(listener.heard.try_recv().is_err(), "it was watched");

    listeners.note_watched(BUCKET, &thread, now, Duration::ZERO, watched);
    let Some(Heard::WatchLapsed(told)) = listener.hear().await else {
        panic!("it was not reported");
    };
    assert_eq!(told, watched);
}

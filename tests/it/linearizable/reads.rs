use std::io::Read as _;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::{GzDecoder, GzEncoder};
use rand::RngExt as _;
use threadkeep_domain::{Key, Slice, Stamp, Thread, ThreadId, ThreadPolicy};
use threadkeep_store::{Backend, Clock, Found, Reader, StateBody, WriteError};

use super::history::{History, Interval};
use super::shown::Shown;
use super::writes::{KEYS, MESSAGES};

/// Tolerance in milliseconds for expiry times, because the test and the store read their clocks at different moments.
const TOLERANCE_MS: u64 = 10_000;

pub(super) async fn read(
    replica: &dyn Backend,
    id: &ThreadId,
    history: &History,
    clock: &Clock,
    policy: &ThreadPolicy,
) -> Result<(), WriteError> {
    let choice = rand::rng().random_range(0..17);
    let before_ms = clock.now_ms();
    let (at, found) = Interval::of(read_one(replica, id, choice)).await;
    let found = found?;
    let thread = found.as_ref().and_then(|(_, shown)| shown.thread());
    if let Some(thread) = thread {
        assert_expiry(thread, before_ms, clock.now_ms(), policy);
    }
    history.read(at, found);
    Ok(())
}

async fn read_one(
    replica: &dyn Backend,
    id: &ThreadId,
    choice: u32,
) -> Result<Option<(Stamp, Shown)>, WriteError> {
    let reader = Reader {
        touch: rand::rng().random_bool(0.7),
        ..Reader::ALL
    };
    Ok(match choice {
        0..3 => shown(replica.get_state(id, reader).await?, Shown::State),
        3..5 => {
            let found = replica.get_state_body(id, reader).await?;
            shown(found, |body| Shown::State(text_of(replica, id, body)))
        }
        5..7 => shown(replica.get_content(id, reader).await?, Shown::Whole),
        7..9 => {
            let stamp = replica.get_stamp(id, reader).await?;
            stamp.map(|stamp| (stamp, Shown::Stamp))
        }
        9..11 => {
            let thread = replica.get_thread(id, Reader::ALL).await?;
            thread.map(|thread| (thread.stamp, Shown::Thread(Box::new(thread))))
        }
        11 => shown(replica.get_keys(id, reader).await?, Shown::Keys),
        12 => {
            let keys = [key(), key()];
            let found = replica.get_values(id, reader, &keys).await?;
            shown(found, |values| Shown::Values(keys.to_vec(), values))
        }
        13..15 => {
            let key = key();
            let found = replica.find_key(id, reader, &key).await?;
            shown(found, |exists| Shown::Key(key, exists))
        }
        _ => {
            let (key, slice) = part();
            let found = replica.get_value(id, reader, &key, slice).await?;
            shown(found, |part| Shown::Part(key, slice, part))
        }
    })
}

fn shown<T>(found: Option<Found<T>>, shown: impl FnOnce(T) -> Shown) -> Option<(Stamp, Shown)> {
    found.map(|found| (found.stamp, shown(found.content)))
}

fn text_of(replica: &dyn Backend, id: &ThreadId, body: StateBody) -> Bytes {
    match body {
        StateBody::Text(text) => text,
        StateBody::Compressible(text) => {
            let mut gzip = GzEncoder::new(&text[..], Compression::fast());
            let mut compressed = Vec::new();
            gzip.read_to_end(&mut compressed).unwrap();
            replica.keep_compressed(id, &text, compressed.into());
            text
        }
        StateBody::Gzip(gzip) => {
            let mut text = Vec::new();
            GzDecoder::new(&gzip[..]).read_to_end(&mut text).unwrap();
            text.into()
        }
    }
}

fn key() -> Key {
    let random = rand::rng().random_range(0..KEYS.len());
    Key::new(KEYS[random]).unwrap()
}

fn part() -> (Key, Option<Slice>) {
    let mut random = rand::rng();
    let slice = match random.random_range(0..4) {
        0 => return (key(), None),
        1 => Slice::Range {
            offset: random.random_range(0..20),
            limit: random.random_bool(0.5).then_some(3),
        },
        _ => Slice::Tail(random.random_range(0..5)),
    };
    (Key::new(MESSAGES).unwrap(), Some(slice))
}

/// Asserts that this read, or a read up to a second earlier, extended the thread's lifetime, but not beyond `max_age`.
fn assert_expiry(thread: &Thread, before_ms: u64, after_ms: u64, policy: &ThreadPolicy) {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap();
    let oldest_ms = policy
        .max_age
        .map_or(u64::MAX, |max_age| thread.created_ms + millis(max_age));
    let ttl_ms = millis(thread.ttl);
    let earliest = oldest_ms.min(before_ms + ttl_ms - 1_000) - TOLERANCE_MS;
    let latest = oldest_ms.min(after_ms + ttl_ms) + TOLERANCE_MS;
    let expires_ms = thread.expires_ms;
    assert!(
        (earliest..=latest).contains(&expires_ms),
        "{earliest}..={latest}: {thread:?}"
    );
}

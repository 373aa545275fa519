use std::time::Duration;

use threadkeep_domain::{Access, Owner, OwnerChange, Slice, ThreadPolicy, Write};
use threadkeep_store::{HistoryFrom, Reader, WriteError};

use super::room::{Room, Subject, key, set};
use super::scope_room;
use crate::support::until;

const SECOND: Duration = Duration::from_secs(1);

const PEEK: Reader = Reader {
    touch: false,
    ..Reader::ALL
};

const LAST_METHOD: u32 = 11;

/// Reads `thread` with one of twelve methods. Returns the answer without the expiry, or `None` if no thread exists.
async fn read(
    room: &Room,
    thread: &Subject,
    method: u32,
    reader: Reader,
) -> Result<Option<String>, WriteError> {
    fn shown<T: std::fmt::Debug>(found: Option<T>) -> Option<String> {
        found.map(|found| format!("{found:?}"))
    }
    let (store, id) = (&thread.store, &thread.id);
    let (n, list) = (key("n"), key("list"));
    let (tail, range) = (
        Slice::Tail(1),
        Slice::Range {
            offset: 0,
            limit: None,
        },
    );
    Ok(match method {
        0 => shown(store.get_state(id, reader).await?),
        1 => shown(
            store
                .get_state_body(id, reader)
                .await?
                .map(|found| found.stamp),
        ),
        2 => shown(store.get_content(id, reader).await?),
        3 => shown(store.get_values(id, reader, &[n, list]).await?),
        4 => shown(store.get_value(id, reader, &n, None).await?),
        5 => shown(store.get_value(id, reader, &list, Some(tail)).await?),
        6 => shown(store.get_value(id, reader, &list, Some(range)).await?),
        7 => shown(store.get_stamp(id, reader).await?),
        8 => shown(store.find_key(id, reader, &n).await?),
        9 => shown(store.get_keys(id, reader).await?),
        10 => shown(
            store
                .get_thread(id, reader)
                .await?
                .map(|thread| thread.stamp),
        ),
        _ => {
            let scope = room.scope_of(thread).id;
            let from = HistoryFrom::After(0);
            shown(room.backend.read_history(&scope, reader, from, 9).await?)
        }
    })
}

async fn full(room: &Room, ttl: Duration, owner: Option<&Owner>) -> Subject {
    let thread = room.subject_under(ThreadPolicy {
        ttl,
        ..ThreadPolicy::THREAD
    });
    thread.merge(&[set("n", "1"), set("list", "[1,2]")]).await;
    thread.set_metadata(r#"{"a":1}"#).await.unwrap();
    let write = Write {
        owner: owner.map_or(OwnerChange::None, OwnerChange::Set),
        ..thread.blank()
    };
    thread.write(&write).await.unwrap();
    let scope = room.scope_of(&thread);
    scope.add(&[scope_room::item("a", "1")]).await;
    thread
}

/// Returns the earliest of ten reported expiry times, because a store may report a time a few milliseconds too late.
async fn end_of(room: &Room, thread: &Subject) -> u64 {
    let mut earliest = u64::MAX;
    for _ in 0..10 {
        let thread = room.backend.peek_thread(&thread.id).await.unwrap();
        earliest = earliest.min(thread.unwrap().expires_ms);
    }
    earliest
}

async fn a_peek_does_not_move_the_expiry_by_a_millisecond(room: Room) {
    let thread = full(&room, 1_000 * SECOND, None).await;
    let end = end_of(&room, &thread).await;

    for method in 0..=LAST_METHOD {
        room.advance(60 * SECOND);
        assert!(read(&room, &thread, method, PEEK).await.unwrap().is_some());
        until(async || end_of(&room, &thread).await == end).await;
    }

    room.advance(1_000 * SECOND - (LAST_METHOD + 1) * 60 * SECOND);
    for method in 0..=LAST_METHOD {
        assert_eq!(
            read(&room, &thread, method, PEEK).await.unwrap(),
            None,
            "{method}"
        );
    }
}

async fn a_peek_returns_the_same_as_a_read(room: Room) {
    let thread = full(&room, 1_000 * SECOND, None).await;
    for method in 0..=LAST_METHOD {
        // peek before and after a use, because a read shortly after a use takes a shorter path
        let peeked = read(&room, &thread, method, PEEK).await.unwrap();
        let used = read(&room, &thread, method, Reader::ALL).await.unwrap();
        let peeked_again = read(&room, &thread, method, PEEK).await.unwrap();

        assert_eq!(peeked, used, "{method}");
        assert_eq!(peeked_again, used, "{method}");
    }

    let none = room.subject();
    for method in 0..=LAST_METHOD {
        assert_eq!(
            read(&room, &none, method, PEEK).await.unwrap(),
            None,
            "{method}"
        );
    }
}

async fn a_use_after_a_peek_extends_the_lifetime(room: Room) {
    for method in 0..=LAST_METHOD {
        let thread = full(&room, 100 * SECOND, None).await;
        room.advance(90 * SECOND);

        read(&room, &thread, method, PEEK).await.unwrap();
        read(&room, &thread, method, Reader::ALL).await.unwrap();

        room.advance(90 * SECOND);
        assert!(thread.exists().await, "{method}");
    }
}

async fn a_peek_is_refused_to_callers_that_may_not_read(room: Room) {
    let [ann, bob] = ["ann", "bob"].map(|name| Owner::new(name).unwrap());
    let thread = full(&room, 1_000 * SECOND, Some(&ann)).await;
    for method in 0..=LAST_METHOD {
        for access in [Access::Unowned, Access::Of(bob.tag())] {
            let peek = Reader { access, ..PEEK };
            let refused = read(&room, &thread, method, peek).await;
            assert!(matches!(refused, Err(WriteError::Refused(_))), "{method}");
        }
        let own = Reader {
            access: Access::Of(ann.tag()),
            ..PEEK
        };
        assert!(read(&room, &thread, method, own).await.unwrap().is_some());
    }
}

super::over_every_store! {
    a_peek_does_not_move_the_expiry_by_a_millisecond,
    a_peek_returns_the_same_as_a_read,
    a_use_after_a_peek_extends_the_lifetime,
    a_peek_is_refused_to_callers_that_may_not_read,
}

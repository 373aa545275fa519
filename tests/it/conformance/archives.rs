use std::time::Duration;

use threadkeep_domain::{EndReason, Life, Refusal, Retention, ThreadId, ThreadPolicy};
use threadkeep_store::{ArchiveHead, ArchivePosition};

use super::room::{Room, Subject, push, push_window, set};

const SECOND: Duration = Duration::from_secs(1);
const START: ArchivePosition = ArchivePosition {
    archived_ms: 0,
    archive: None,
};

async fn end(thread: &Subject) -> Life {
    let life = thread.stamp().await.life;
    assert!(thread.destroy().await.existed);
    life
}

async fn a_destroyed_thread_is_archived_with_its_state(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1.0"), set("e", "[]")]).await;
    thread.set_metadata(r#"{"a":1}"#).await.unwrap();
    let last = thread.thread().await.unwrap();
    end(&thread).await;

    let archive = room.archive(&thread).await.unwrap();

    let event = room.events(&thread).await.pop().unwrap();
    let head = &archive.head;
    assert_eq!(&archive.state[..], br#"{"e":[],"k":1.0}"#);
    assert_eq!((head.id, head.life), (thread.id, last.stamp.life));
    assert_eq!((head.version, head.size_bytes), (2, last.size_bytes));
    assert_eq!(head.reason, EndReason::Destroyed);
    assert_eq!(head.ended_ms, event.time_ms);
    assert!(head.archived_ms >= head.ended_ms);
    assert_eq!(head.metadata.as_str(), r#"{"a":1}"#);
}

async fn a_large_state_is_archived_to_the_byte(room: Room) {
    let thread = room.subject();
    let element = format!("\"{}\"", "x".repeat(100));
    for _ in 0..120 {
        thread.merge(&[push_window("l", &element, 100)]).await;
    }
    let large = format!("\"{}\"", "y".repeat(50_000));
    thread.merge(&[set("s", &large), push("m", &large)]).await;
    let state = thread.state().await.unwrap();
    end(&thread).await;

    let archive = room.archive(&thread).await.unwrap();

    assert_eq!(archive.state, state);
    assert_eq!(archive.head.size_bytes, state.len() as u64);
    assert_eq!(archive.head.metadata.as_str(), "{}");
}

async fn living_and_unknown_threads_have_no_archive(room: Room) {
    let thread = room.subject();
    let life = thread.merge(&[]).await.stamp.life;

    assert_eq!(room.archive(&thread).await, None);
    assert_eq!(room.archive(&room.subject()).await, None);
    let backend = &room.backend;
    assert_eq!(
        backend.get_archive(&thread.id, Some(life)).await.unwrap(),
        None
    );
    assert_eq!(backend.get_final(&thread.id, life).await.unwrap(), None);
    assert!(listed(&room, START, 10).await.is_empty());
}

async fn each_life_has_an_archive_and_the_newest_is_the_default(room: Room) {
    let thread = room.subject();
    let mut lives = Vec::new();
    for state in ["1", "2", "3"] {
        thread.merge(&[set("k", state)]).await;
        lives.push(end(&thread).await);
        room.advance(thread.policy.tombstone);
    }

    let get = async |life| {
        let archive = room.backend.get_archive(&thread.id, life).await.unwrap();
        archive.map(|archive| (archive.head.life, archive.state))
    };
    assert_eq!(get(None).await, Some((lives[2], r#"{"k":3}"#.into())));
    for (life, state) in lives.iter().zip(["1", "2", "3"]) {
        let state = format!(r#"{{"k":{state}}}"#).into();
        assert_eq!(get(Some(*life)).await, Some((*life, state)));
        let last = room.backend.get_final(&thread.id, *life).await.unwrap();
        assert_eq!(last.unwrap().head.life, *life);
    }
    assert_eq!(get(Some(Life(7))).await, None);
    let heads = listed(&room, START, 10).await;
    assert!(heads.iter().map(|head| head.life).eq(lives));
}

async fn an_archive_is_readable_until_its_retention_ends(room: Room) {
    let room = room
        .keeping(Retention {
            archive: 100 * SECOND,
            log: 1_000 * SECOND,
            ..Retention::DEFAULT
        })
        .await;
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let life = end(&thread).await;

    room.advance(90 * SECOND);
    assert!(room.archive(&thread).await.is_some());
    assert_eq!(listed(&room, START, 10).await.len(), 1);
    room.advance(10 * SECOND);
    room.tidy().await;

    let by_life = room.backend.get_archive(&thread.id, Some(life)).await;
    assert_eq!(room.archive(&thread).await, None);
    assert_eq!(by_life.unwrap(), None);
    assert!(listed(&room, START, 10).await.is_empty());
    // the final state remains for as long as the log contains the end event
    let last = room.backend.get_final(&thread.id, life).await.unwrap();
    assert_eq!(&last.unwrap().state[..], br#"{"k":1}"#);
}

async fn without_archives_the_final_state_remains_for_the_end_event(room: Room) {
    let room = room
        .keeping(Retention {
            archive: Duration::ZERO,
            ..Retention::DEFAULT
        })
        .await;
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let life = end(&thread).await;
    room.tidy().await;

    assert_eq!(room.archive(&thread).await, None);
    assert!(listed(&room, START, 10).await.is_empty());
    let restored = room.backend.restore(&thread.id, None, &thread.policy).await;
    assert_eq!(restored.unwrap(), None);
    let last = room.backend.get_final(&thread.id, life).await.unwrap();
    assert_eq!(&last.unwrap().state[..], br#"{"k":1}"#);
}

async fn archives_are_listed_in_order_and_in_pages(room: Room) {
    let threads: Vec<_> = (0..40).map(|_| room.subject()).collect();
    let mut expected = Vec::new();
    for (number, thread) in threads.iter().enumerate() {
        thread.merge(&[set("n", &number.to_string())]).await;
        thread
            .set_metadata(&format!(r#"{{"n":{number}}}"#))
            .await
            .unwrap();
        if number % 5 == 0 {
            room.advance(SECOND);
        }
        end(thread).await;
        expected.push(room.archive(thread).await.unwrap().head);
    }
    expected.sort_by_key(position);

    for limit in [1, 7, 39, 40, 1_000] {
        assert_eq!(listed(&room, START, limit).await, expected);
    }
    let middle = position(&expected[20]);
    assert_eq!(listed(&room, middle, 3).await, expected[21..]);
    let since = ArchivePosition {
        archive: None,
        ..middle
    };
    let from = expected.partition_point(|head| head.archived_ms < since.archived_ms);
    assert_eq!(listed(&room, since, 1_000).await, expected[from..]);
    let last = position(&expected[39]);
    assert!(listed(&room, last, 1).await.is_empty());
}

async fn expired_threads_are_listed_by_archival_time(room: Room) {
    let sooner = room.subject();
    let later = room.subject();
    later.merge(&[]).await;
    room.advance(SECOND);
    sooner.merge(&[]).await;
    sooner.destroy().await;
    room.advance(later.policy.ttl);
    room.reap().await;

    let heads = listed(&room, START, 10).await;

    let ids: Vec<ThreadId> = heads.iter().map(|head| head.id).collect();
    assert_eq!(ids, [sooner.id, later.id]);
    assert_eq!(heads[1].reason, EndReason::Expired);
}

async fn archives_of_equal_times_and_prefixed_ids_are_listed_once(room: Room) {
    // choose two ids in the same bucket (a partition of the ids), so that the first id is a prefix of the second
    let threads = loop {
        let (shorter, mut longer) = (room.subject(), room.subject());
        longer.id = format!("{}0", shorter.id).parse().unwrap();
        if room.bucket(&shorter) == room.bucket(&longer) {
            break [shorter, longer];
        }
    };
    for thread in &threads {
        thread.merge(&[]).await;
    }
    room.advance(threads[0].policy.ttl);
    room.reap().await;

    let expected = threads.map(|thread| thread.id);
    for limit in [1, 2, 100] {
        let heads = listed(&room, START, limit).await;
        assert!(heads.is_sorted_by_key(position));
        assert!(heads.iter().map(|head| head.id).eq(expected));
    }
}

async fn unlimited_retention_never_ends(room: Room) {
    let room = room
        .keeping(Retention {
            grace: Duration::MAX,
            archive: Duration::MAX,
            log: Duration::MAX,
        })
        .await;
    let thread = room.subject_under(ThreadPolicy {
        ttl: Duration::MAX,
        max_age: Some(Duration::MAX),
        tombstone: Duration::MAX,
        ..ThreadPolicy::THREAD
    });
    thread.merge(&[set("k", "1")]).await;
    thread.set_ttl(Duration::MAX).await;
    thread.merge(&[push("l", "1")]).await;
    let state = thread.state().await.unwrap();
    room.advance(1_000_000 * SECOND);
    assert_eq!(thread.state().await.unwrap(), state);
    let life = end(&thread).await;

    room.advance(1_000_000 * SECOND);
    room.tidy().await;

    assert_eq!(room.events(&thread).await.len(), 2);
    assert_eq!(room.archive(&thread).await.unwrap().state, state);
    assert_eq!(listed(&room, START, 10).await.len(), 1);
    assert_eq!(thread.try_merge(&[]).await, Err(Refusal::Destroyed));
    let last = room.backend.get_final(&thread.id, life).await.unwrap();
    assert_eq!(last.unwrap().state, state);
    let restored = room.backend.restore(&thread.id, None, &thread.policy).await;
    assert!(restored.unwrap().is_some());
    assert_eq!(thread.state().await.unwrap(), state);
}

fn position(head: &ArchiveHead) -> ArchivePosition {
    ArchivePosition {
        archived_ms: head.archived_ms,
        archive: Some((head.id, head.life)),
    }
}

async fn listed(room: &Room, after: ArchivePosition, limit: usize) -> Vec<ArchiveHead> {
    let mut heads = Vec::new();
    let mut next = Some(after);
    while let Some(after) = next {
        let page = room.backend.list_archives(&after, limit).await.unwrap();
        assert!(page.heads.len() <= limit);
        assert!(page.next.as_ref().is_none_or(|next| *next > after));
        heads.extend(page.heads);
        next = page.next;
    }
    heads
}

super::over_every_store! {
    a_destroyed_thread_is_archived_with_its_state,
    a_large_state_is_archived_to_the_byte,
    living_and_unknown_threads_have_no_archive,
    each_life_has_an_archive_and_the_newest_is_the_default,
    an_archive_is_readable_until_its_retention_ends,
    without_archives_the_final_state_remains_for_the_end_event,
    archives_are_listed_in_order_and_in_pages,
    expired_threads_are_listed_by_archival_time,
    archives_of_equal_times_and_prefixed_ids_are_listed_once,
    unlimited_retention_never_ends,
}

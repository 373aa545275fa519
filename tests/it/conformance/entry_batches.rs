use std::sync::Arc;

use threadkeep_domain::{ContentType, EntryPolicy, Refusal};
use threadkeep_service::{BatchPut, EntryDraft, NamespaceService, ServiceError};
use threadkeep_store::{Entry, EntryRange, EntryTerms, KeyOrder};

use super::room::{Room, once};
use super::space::{Space, key, text};

const MIB: usize = 1_048_576;

fn service(room: &Room) -> NamespaceService {
    NamespaceService::new(Arc::clone(&room.backend) as _, EntryPolicy::DEFAULT)
}

fn batch_put(name: &str, body: &str, if_absent: bool) -> BatchPut {
    let plain = ContentType::new("text/plain").unwrap();
    BatchPut {
        key: key(name),
        draft: EntryDraft::new(plain, body.to_owned()),
        if_absent,
    }
}

/// Result for each entry: `Ok` with the new version, or `Err` with the current version if the put was rejected.
type Versions = Vec<Result<u64, u64>>;

async fn put_all(
    room: &Room,
    space: &Space,
    puts: &[BatchPut],
    request: &str,
) -> Result<(Versions, bool), ServiceError> {
    let key = Some(once("key", request));
    let service = service(room);
    let outcomes = service.put_many(&space.namespace, puts.to_vec(), key);
    let outcomes = outcomes.await?;
    let versions = outcomes.answer.into_iter().map(|put| match put {
        Ok(put) => Ok(put.stamp.version),
        Err(ServiceError::Refused(Refusal::VersionMismatch { current })) => Err(current.version),
        Err(error) => panic!("{error:?}"),
    });
    Ok((versions.collect(), outcomes.replayed))
}

async fn each_put_has_its_own_outcome(room: Room) {
    let space = room.space("n");
    space.put("there", "1").await;
    space.put("there", "2").await;
    let puts = [
        batch_put("new", "a", false),
        batch_put("there", "b", true),
        batch_put("absent", "c", true),
    ];

    let outcomes = put_all(&room, &space, &puts, "one").await.unwrap();

    assert_eq!(outcomes, (vec![Ok(1), Err(2), Ok(1)], false));
    assert_eq!(space.keys("", 10).await, ["absent", "new", "there"]);
    assert_eq!(space.body("there").await.unwrap(), "2");
}

async fn a_repeat_returns_the_first_outcomes_and_changes_nothing(room: Room) {
    let space = room.space("n");
    space.put("there", "1").await;
    let puts = [batch_put("new", "a", false), batch_put("there", "b", true)];
    let (first, _) = put_all(&room, &space, &puts, "one").await.unwrap();
    space.delete("there").await;
    space.put("new", "later").await;

    let repeat = put_all(&room, &space, &puts, "one").await.unwrap();

    assert_eq!(repeat, (first, true));
    assert_eq!(space.body("new").await.unwrap(), "later");
    assert_eq!(space.get("there").await, None);
    let other = [batch_put("other", "a", false)];
    let reused = put_all(&room, &space, &other, "two").await;
    assert!(matches!(
        reused,
        Err(ServiceError::Refused(Refusal::IdempotencyKeyReused))
    ));
    assert_eq!(space.get("other").await, None);
}

async fn a_repeat_completes_a_request_that_ended_halfway(room: Room) {
    let space = room.space("n");
    let puts: Vec<_> = (0..10)
        .map(|number| batch_put(&format!("{number}"), "a", false))
        .collect();
    let key = once("key", "one");
    // as if the server had failed after the first three puts
    room.backend
        .begin_writes(&space.namespace, key)
        .await
        .unwrap();
    for number in 0..3 {
        let terms = EntryTerms {
            idempotency: Some(key),
            ..EntryTerms::default()
        };
        let name = format!("{number}");
        space.put_by(&name, &text("a"), terms).await.unwrap();
    }

    let completed = put_all(&room, &space, &puts, "one").await.unwrap();

    assert_eq!(completed, (vec![Ok(1); 10], false));
    assert_eq!(space.counts().await, (10, 10));
    let repeat = put_all(&room, &space, &puts, "one").await.unwrap();
    assert_eq!(repeat, (vec![Ok(1); 10], true));
}

fn body_bytes(_: &threadkeep_domain::EntryKey, entry: &Entry) -> u64 {
    entry.body.len() as u64
}

async fn a_batch_read_stops_when_the_answer_is_full(room: Room) {
    let space = room.space("n");
    let large = "x".repeat(MIB - 1);
    for name in ["a", "b", "c", "d"] {
        space
            .put(name, if name == "b" { "small" } else { &large })
            .await;
    }
    let keys = ["none", "d", "b", "other", "a", "c", "last"].map(key);

    let service = service(&room);
    let read = service.get_many(&space.namespace, &keys, body_bytes);
    let read = read.await.unwrap();

    let names = |keys: &[_]| -> Vec<String> {
        let names = keys.iter();
        names
            .map(|key: &threadkeep_domain::EntryKey| key.as_str().to_owned())
            .collect()
    };
    let read_keys: Vec<_> = read.entries.iter().map(|(key, _)| key.clone()).collect();
    assert_eq!(names(&read_keys), ["d", "b"]);
    assert_eq!(names(&read.missing), ["none", "other"]);
    assert_eq!(names(&read.unread), ["a", "c", "last"]);
    let rest = service.get_many(&space.namespace, &read.unread, body_bytes);
    let rest = rest.await.unwrap();
    assert_eq!(rest.entries.len(), 2);
    assert_eq!(names(&rest.missing), ["last"]);
    assert!(rest.unread.is_empty());
}

async fn pages_with_bodies_are_never_empty_and_list_each_entry_once(room: Room) {
    let space = room.space("n");
    for number in 0..6 {
        let body = "x".repeat(if number % 2 == 0 { MIB } else { 10 });
        space.put(&format!("{number}"), &body).await;
    }

    for (order, limit) in [(KeyOrder::Ascending, 100), (KeyOrder::Descending, 3)] {
        let (mut names, mut after, mut pages) = (Vec::new(), None, 0);
        loop {
            let range = EntryRange {
                after: after.as_ref(),
                order,
                ..EntryRange::default()
            };
            let service = service(&room);
            // each entry counts as twice its size
            let page = service.list_bodies(&space.namespace, range, limit, |_, entry| {
                2 * entry.body.len() as u64
            });
            let page = page.await.unwrap();
            pages += 1;
            let bytes: usize = page.entries.iter().map(|(_, entry)| entry.body.len()).sum();
            assert!(bytes <= MIB, "{bytes}");
            names.extend(page.entries.iter().map(|(key, _)| key.as_str().to_owned()));
            after = page.next;
            if after.is_none() {
                break;
            }
            assert!(!page.entries.is_empty());
        }
        if order == KeyOrder::Descending {
            names.reverse();
        }
        assert_eq!(names, ["0", "1", "2", "3", "4", "5"]);
        assert!((4..=7).contains(&pages), "{pages}");
    }
}

super::over_every_store! {
    each_put_has_its_own_outcome,
    a_repeat_returns_the_first_outcomes_and_changes_nothing,
    a_repeat_completes_a_request_that_ended_halfway,
    a_batch_read_stops_when_the_answer_is_full,
    pages_with_bodies_are_never_empty_and_list_each_entry_once,
}

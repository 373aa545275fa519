use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use threadkeep_domain::{MetadataChange, OwnerChange, Write};
use threadkeep_store::{OwnerUsage, ThreadOrder};

use super::owners::{all_threads, bind, list, measure, owned, owner, owner_of, updated};
use super::room::{Room, increment, json, push, set};

const SECOND: Duration = Duration::from_secs(1);

async fn both_orders_list_the_newest_thread_first(room: Room) {
    let mut made = Vec::new();
    for _ in 0..12 {
        made.push(owned(&room, "ann").await);
        owned(&room, "bob").await;
        room.subject().merge(&[set("k", "1")]).await;
        room.advance(SECOND);
    }
    let created: Vec<_> = made.iter().rev().map(|thread| thread.id).collect();
    for limit in [1, 5, 12, 100] {
        for order in [ThreadOrder::Updated, ThreadOrder::Created] {
            assert_eq!(list(&room, "ann", order, limit).await, created, "{limit}");
        }
    }
    // each kind of write moves a thread to the front of the list by update time, but not in the list by creation time
    let metadata = MetadataChange {
        new: json(r#"{"a":"b"}"#),
        old: None,
    };
    made[0].merge(&[set("k", "2")]).await;
    room.advance(SECOND);
    made[1].merge(&[push("list", "1")]).await;
    room.advance(SECOND);
    made[2].merge(&[increment("k", 1), set("l", "1")]).await;
    room.advance(SECOND);
    let write = Write {
        metadata: Some(&metadata),
        ..made[3].blank()
    };
    made[3].write(&write).await.unwrap();
    let mut expected: Vec<_> = [3, 2, 1, 0].map(|n| made[n].id).to_vec();
    expected.extend(made[4..].iter().rev().map(|thread| thread.id));
    assert_eq!(updated(&room, "ann").await, expected);
    assert_eq!(list(&room, "ann", ThreadOrder::Created, 5).await, created);
}

async fn a_list_is_sorted_by_update_time_after_writes_at_any_interval(room: Room) {
    const THREADS: usize = 60;
    let mut random = StdRng::seed_from_u64(7);
    let mut threads = Vec::new();
    for _ in 0..THREADS {
        threads.push(owned(&room, "ann").await);
    }
    let mut written: BTreeMap<_, _> = BTreeMap::new();
    for round in 0..120 {
        // advance by less or more than the minimum interval between two moves of a thread in the list
        room.advance(Duration::from_millis(random.random_range(1..1_500)));
        let thread = &threads[random.random_range(0..THREADS)];
        match round % 3 {
            0 => thread.merge(&[set("k", "2")]).await,
            1 => thread.merge(&[push("list", "1")]).await,
            _ => thread.merge(&[increment("n", 1), set("l", "1")]).await,
        };
        written.insert(thread.id, round);
        if round % 20 == 19 {
            let mut expected: Vec<_> = written.iter().map(|(id, round)| (*round, *id)).collect();
            expected.sort_unstable_by_key(|(round, _)| Reverse(*round));
            let expected: Vec<_> = expected.into_iter().map(|(_, id)| id).collect();
            for limit in [1, 7, 100] {
                let found = list(&room, "ann", ThreadOrder::Updated, limit).await;
                assert_eq!(found.len(), THREADS, "in pages of {limit}");
                assert_eq!(found[..expected.len()], expected, "in pages of {limit}");
            }
        }
    }
}

async fn threads_of_one_millisecond_are_each_listed_once(room: Room) {
    const MANY: u64 = 600;
    room.advance(3_600 * SECOND);
    let threads: Vec<_> = (0..MANY).map(|_| room.subject()).collect();
    room.for_each_concurrently(0..MANY, async |n| {
        bind(&threads[n as usize], "ann").await.unwrap();
    })
    .await;
    let expected: BTreeSet<_> = threads.iter().map(|thread| thread.id).collect();
    for limit in [7, 100] {
        let ids = list(&room, "ann", ThreadOrder::Updated, limit).await;
        assert_eq!(ids.len(), MANY as usize, "in pages of {limit}");
        assert_eq!(ids.iter().copied().collect::<BTreeSet<_>>(), expected);
        let all = all_threads(&room, limit).await;
        assert!(all.is_sorted(), "in pages of {limit}");
        assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), expected);
    }
    let size_bytes = 7 * MANY;
    let owned = OwnerUsage {
        threads: MANY,
        size_bytes,
    };
    assert_eq!(measure(&room, "ann").await, owned);
    assert_eq!(measure(&room, "bob").await, OwnerUsage::default());
}

async fn an_ended_thread_is_in_no_list(room: Room) {
    let [expires, is_destroyed, stays] = [
        owned(&room, "ann").await,
        owned(&room, "ann").await,
        owned(&room, "ann").await,
    ];
    is_destroyed.destroy().await;
    stays.set_ttl(7_200 * SECOND).await;
    room.advance(3_700 * SECOND);
    assert!(!expires.exists().await);
    for order in [ThreadOrder::Updated, ThreadOrder::Created] {
        assert_eq!(list(&room, "ann", order, 10).await, [stays.id]);
    }
    assert_eq!(all_threads(&room, 10).await, [stays.id]);
    assert_eq!(measure(&room, "ann").await.threads, 1);
    assert_eq!(list(&room, "bob", ThreadOrder::Updated, 10).await, []);
}

async fn listing_does_not_extend_a_lifetime(room: Room) {
    let thread = owned(&room, "ann").await;
    room.advance(3_500 * SECOND);
    assert_eq!(updated(&room, "ann").await, [thread.id]);
    assert_eq!(all_threads(&room, 1).await, [thread.id]);
    measure(&room, "ann").await;
    room.advance(200 * SECOND);
    assert!(!thread.exists().await);
}

async fn a_refused_write_does_not_reorder_a_list(room: Room) {
    let first = owned(&room, "ann").await;
    room.advance(SECOND);
    let second = owned(&room, "ann").await;
    room.advance(SECOND);
    let bob = owner("bob");
    let operations = [set("", "1"), increment("k", 1), push("k", "1")];
    let write = Write {
        operations: &operations,
        owner: OwnerChange::Set(&bob),
        ..first.blank()
    };
    assert!(first.write(&write).await.is_err());
    assert_eq!(updated(&room, "ann").await, [second.id, first.id]);
    assert_eq!(updated(&room, "bob").await, []);
    assert_eq!(owner_of(&first).await.as_deref(), Some("ann"));
}

super::over_every_store! {
    both_orders_list_the_newest_thread_first,
    a_list_is_sorted_by_update_time_after_writes_at_any_interval,
    threads_of_one_millisecond_are_each_listed_once,
    an_ended_thread_is_in_no_list,
    listing_does_not_extend_a_lifetime,
    a_refused_write_does_not_reorder_a_list,
}

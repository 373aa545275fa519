use std::time::Duration;

use threadkeep_domain::Precondition;
use threadkeep_store::{KeyOrder, Reading, USE_RECORDED_EVERY};

use super::room::{Room, in_parallel};
use super::space::{Space, seconds, text};

const SECOND: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(100);

async fn create_idle(room: &Room, name: &str) -> Space {
    let space = room.space(name);
    space.set_idle(Some(IDLE)).await;
    space.put("k", "x").await;
    space
}

async fn listed(room: &Room) -> Vec<String> {
    let page = room.backend.list_namespaces(None, 100).await.unwrap();
    let names = page.records.iter();
    names
        .map(|record| record.namespace.as_str().to_owned())
        .collect()
}

async fn assert_never_created(room: &Room, space: &Space) {
    assert_eq!(space.get("k").await, None);
    assert_eq!(space.read("k", Reading::Use).await, None);
    assert_eq!(space.record().await, None);
    assert_eq!(space.counts().await, (0, 0));
    assert_eq!(space.usage().await.last_used_ms, None);
    assert!(space.keys("", 10).await.is_empty());
    assert!(
        !listed(room)
            .await
            .contains(&space.namespace.as_str().into())
    );
    let exists = space.put_if("k", "y", Precondition::Exists).await;
    assert!(exists.is_err());
    assert!(!space.delete("k").await);
}

async fn an_idle_namespace_ends_with_all_its_entries(room: Room) {
    let (space, other) = (create_idle(&room, "n").await, room.space("m"));
    for number in 0..300 {
        let lifetime = seconds(if number % 2 == 0 { 50 } else { 1_000 });
        space.put_for(&format!("{number}"), "x", lifetime).await;
    }
    other.put("k", "y").await;
    room.advance(IDLE - SECOND);
    assert_eq!(space.counts().await, (151, 151));
    assert!(space.record().await.is_some());

    room.advance(SECOND + USE_RECORDED_EVERY);

    assert_never_created(&room, &space).await;
    assert_eq!(other.body("k").await.unwrap(), "y");
    assert_eq!(listed(&room).await, ["m"]);
    room.advance(2_000 * SECOND);
    assert_never_created(&room, &space).await;
}

async fn a_use_of_one_entry_keeps_the_namespace(room: Room) {
    let space = create_idle(&room, "n").await;
    space.put("other", "y").await;
    for step in 0..6 {
        room.advance(IDLE - SECOND);
        match step {
            0 => drop(space.get("k").await.unwrap()),
            1 => drop(space.read("k", Reading::Use).await.unwrap()),
            2 => drop(space.page("", None, KeyOrder::Ascending, 1).await),
            3 => drop(space.put("new", "z").await),
            4 => assert!(space.delete("new").await),
            _ => assert_eq!(space.get("none").await, None),
        }
    }

    room.advance(IDLE - SECOND);
    assert_eq!(space.body("other").await.unwrap(), "y");
    room.advance(IDLE + USE_RECORDED_EVERY);
    assert_never_created(&room, &space).await;
}

async fn uses_in_quick_succession_extend_the_lifetime(room: Room) {
    let space = create_idle(&room, "n").await;
    for _ in 0..30 {
        room.advance(USE_RECORDED_EVERY / 4);
        space.get("k").await.unwrap();
    }

    room.advance(IDLE - SECOND);

    assert_eq!(space.body("k").await.unwrap(), "x");
}

async fn reading_a_namespace_record_does_not_extend_its_lifetime(room: Room) {
    let space = create_idle(&room, "n").await;
    room.advance(IDLE - SECOND);
    space.record().await.unwrap();
    space.usage().await;
    assert_eq!(listed(&room).await, ["n"]);

    room.advance(SECOND + USE_RECORDED_EVERY);

    assert_never_created(&room, &space).await;
}

async fn a_put_after_the_end_creates_a_new_namespace(room: Room) {
    let space = create_idle(&room, "n").await;
    space.set_default(seconds(5_000)).await;
    let first = space.put("k", "old").await.stamp;
    for number in 0..40 {
        space.put(&format!("{number}"), "old").await;
    }
    let before = space.record().await.unwrap();
    room.advance(IDLE + USE_RECORDED_EVERY);

    let put = space.put("k", "new!").await;

    assert_eq!((put.stamp.version, put.expires_ms), (1, None));
    assert_ne!(put.stamp.life, first.life);
    assert_eq!(space.keys("", 7).await, ["k"]);
    assert_eq!(space.get("7").await, None);
    let record = space.record().await.unwrap();
    assert!(record.created_ms > before.created_ms);
    assert_eq!((record.idle, record.default_lifetime), (None, None));
    assert_eq!(space.counts().await, (1, 4));
    let absent = Precondition::Version(0);
    assert_eq!(
        space
            .put_if("7", "new", absent)
            .await
            .unwrap()
            .stamp
            .version,
        1
    );
    // the new namespace inherits neither the idle time of the old namespace nor the lifetimes of its entries
    room.advance(100 * IDLE);
    assert_eq!(space.body("k").await.unwrap(), "new!");
    assert_eq!(space.counts().await, (2, 7));
    assert_eq!(listed(&room).await, ["n"]);
}

async fn upkeep_frees_ended_namespaces_and_no_others(room: Room) {
    for number in 0..3 {
        let space = create_idle(&room, &format!("n{number}")).await;
        for number in 0..100 {
            space.put(&format!("{number}"), "old").await;
        }
    }
    let kept = room.space("kept");
    kept.put("k", "x").await;
    room.advance(IDLE + USE_RECORDED_EVERY);
    let again = room.space("n1");
    again.put("5", "new").await;

    room.tidy().await;

    assert_eq!(again.keys("", 100).await, ["5"]);
    assert_eq!(again.counts().await, (1, 3));
    assert_eq!(kept.body("k").await.unwrap(), "x");
    assert_eq!(listed(&room).await, ["n1", "kept"]);
    // entries of the ended namespace would be counted here
    assert_eq!(again.destroy().await, 1);
}

async fn a_namespace_that_ended_twice_keeps_nothing_of_either_life(room: Room) {
    let space = create_idle(&room, "n").await;
    space.put("first", "x").await;
    room.advance(IDLE + USE_RECORDED_EVERY);
    space.put("second", "x").await;
    space.set_idle(Some(IDLE)).await;
    room.advance(IDLE + USE_RECORDED_EVERY);

    assert_never_created(&room, &space).await;
    space.put("third", "x").await;
    assert_eq!(space.keys("", 10).await, ["third"]);
    assert_eq!(space.counts().await, (1, 1));
}

async fn a_changed_idle_time_counts_from_the_change(room: Room) {
    let space = create_idle(&room, "n").await;
    let record = space.record().await.unwrap();
    let end = record.idle.unwrap();
    assert_eq!(end.ttl, IDLE);
    assert!(end.ends_ms >= record.created_ms + 100_000);
    room.advance(90 * SECOND);
    let longer = space.set_idle(Some(2 * IDLE)).await.idle.unwrap();
    assert_eq!(longer.ttl, 2 * IDLE);
    // changing a different setting does not change the idle time
    space.set_default(seconds(1_000)).await;
    room.advance(190 * SECOND);
    assert_eq!(space.body("k").await.unwrap(), "x");
    space.set_idle(Some(IDLE)).await;
    assert_eq!(
        space.record().await.unwrap().default_lifetime,
        seconds(1_000)
    );
    room.advance(IDLE + USE_RECORDED_EVERY);
    assert_never_created(&room, &space).await;

    let forever = create_idle(&room, "m").await;
    assert_eq!(forever.set_idle(None).await.idle, None);
    room.advance(10 * IDLE);
    assert_eq!(forever.body("k").await.unwrap(), "x");
}

async fn a_deleted_namespace_loses_its_idle_time(room: Room) {
    let space = create_idle(&room, "n").await;
    assert_eq!(space.destroy().await, 1);

    space.put("k", "y").await;
    room.advance(10 * IDLE);

    assert_eq!(space.body("k").await.unwrap(), "y");
    assert_eq!(space.record().await.unwrap().idle, None);
}

/// Each worker caches the namespace before the namespace ends, and must not use the cached record afterwards.
async fn all_workers_see_the_end_immediately(room: Room) {
    let space = create_idle(&room, "n").await;
    let workers: Vec<_> = (0..3)
        .map(|_| Space {
            backend: room.backend.for_worker(),
            namespace: space.namespace.clone(),
        })
        .collect();
    for worker in &workers {
        assert_eq!(worker.body("k").await.unwrap(), "x");
    }
    room.advance(IDLE + USE_RECORDED_EVERY);

    assert_eq!(workers[0].put("new", "z").await.stamp.version, 1);

    for worker in &workers {
        assert_eq!(worker.get("k").await, None);
        assert_eq!(worker.keys("", 10).await, ["new"]);
    }
    for (version, worker) in (1..).zip(&workers) {
        assert_eq!(worker.put("k", "y").await.stamp.version, version);
    }
}

async fn concurrent_puts_at_the_end_are_all_kept(room: Room) {
    for round in 0..20 {
        let space = create_idle(&room, &format!("n{round}")).await;
        room.advance(IDLE + USE_RECORDED_EVERY);
        let puts = (0..8).map(|number| {
            let space = space.clone();
            in_parallel(async move { space.put(&format!("new {number}"), "y").await })
        });
        for put in puts.collect::<Vec<_>>() {
            assert_eq!(put.await.unwrap().stamp.version, 1);
        }

        assert_eq!(space.keys("", 100).await.len(), 8);
        assert_eq!(space.counts().await, (8, 8));
        assert!(space.record().await.is_some());
        assert_eq!(space.get("k").await, None);
    }
}

async fn several_heads_are_read_together(room: Room) {
    let space = create_idle(&room, "n").await;
    space.put_entry("l", &text("longer")).await;
    let keys = ["l", "none", "k", "l"].map(super::space::key);
    let heads = async || {
        let heads = room.backend.get_heads(&space.namespace, &keys).await;
        let heads = heads.unwrap().into_iter();
        heads
            .map(|head| head.map(|head| head.size_bytes))
            .collect::<Vec<_>>()
    };

    assert_eq!(heads().await, [Some(6), None, Some(1), Some(6)]);
    room.advance(IDLE - SECOND);
    heads().await;
    room.advance(IDLE - SECOND);
    assert_eq!(heads().await, [Some(6), None, Some(1), Some(6)]);
    room.advance(IDLE + USE_RECORDED_EVERY);
    assert_eq!(heads().await, [None; 4]);
}

super::over_every_store! {
    an_idle_namespace_ends_with_all_its_entries,
    a_use_of_one_entry_keeps_the_namespace,
    uses_in_quick_succession_extend_the_lifetime,
    reading_a_namespace_record_does_not_extend_its_lifetime,
    a_put_after_the_end_creates_a_new_namespace,
    upkeep_frees_ended_namespaces_and_no_others,
    a_namespace_that_ended_twice_keeps_nothing_of_either_life,
    a_changed_idle_time_counts_from_the_change,
    a_deleted_namespace_loses_its_idle_time,
    all_workers_see_the_end_immediately,
    concurrent_puts_at_the_end_are_all_kept,
    several_heads_are_read_together,
}

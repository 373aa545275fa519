use std::time::Duration;

use threadkeep_domain::{ContentEncoding, ContentType, Lifetime, Precondition, Stamp};
use threadkeep_store::{KeyOrder, NewEntry, Reading};

use super::room::Room;
use super::space::{Space, seconds, text};

const SECOND: Duration = Duration::from_secs(1);

async fn an_entry_reads_back_byte_for_byte(room: Room) {
    let space = room.space("n");
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let new = NewEntry {
        body: bytes.clone().into(),
        content_type: ContentType::new("Text/HTML; charset=\"x\"").unwrap(),
        content_encoding: Some(ContentEncoding::new("gzip, br").unwrap()),
        lifetime: seconds(100),
        default_lifetime: Lifetime::Forever,
    };

    let put = space.put_entry("k", &new).await;

    let entry = space.get("k").await.unwrap();
    assert_eq!(entry.body, bytes);
    assert_eq!(entry.head.stamp, put.stamp);
    assert_eq!(put.stamp.version, 1);
    assert_eq!(entry.head.size_bytes, 100_000);
    assert_eq!(entry.head.content_type, new.content_type);
    assert_eq!(entry.head.content_encoding, new.content_encoding);
    assert_eq!(entry.head.lifetime, new.lifetime.unwrap());
    assert_eq!(entry.head.created_ms, entry.head.updated_ms);
    assert_eq!(entry.head.expires_ms, Some(entry.head.created_ms + 100_000));
    assert_eq!(entry.head.expires_ms, put.expires_ms);
    assert_eq!(space.get("other").await, None);
    assert_eq!(room.space("m").get("k").await, None);
}

async fn empty_bodies_and_the_longest_names_are_stored(room: Room) {
    let names = ["é".repeat(64), "/%{}:\u{1F600}".into()];
    let keys = ["k".repeat(1_024), "{}:*?[]\\^ \u{10FFFF}".into()];
    for name in &names {
        for key in &keys {
            room.space(name).put(key, "").await;
        }
    }

    for name in &names {
        let space = room.space(name);
        assert_eq!(space.body(&keys[0]).await.unwrap(), "");
        assert_eq!(space.counts().await, (2, 0));
        assert_eq!(space.keys("", 10).await, keys);
    }
}

async fn a_put_replaces_the_whole_entry(room: Room) {
    let space = room.space("n");
    let first = NewEntry {
        content_encoding: Some(ContentEncoding::new("gzip").unwrap()),
        lifetime: seconds(50),
        ..text("first")
    };
    let before = space.put_entry("k", &first).await;
    let created = space.get("k").await.unwrap().head;
    room.advance(10 * SECOND);

    let put = space.put("k", "second one").await;

    assert_eq!(put.stamp.version, 2);
    assert_eq!(put.stamp.life, before.stamp.life);
    assert_eq!(put.expires_ms, None);
    let entry = space.get("k").await.unwrap();
    assert_eq!(entry.body, "second one");
    assert_eq!(entry.head.content_encoding, None);
    assert_eq!(entry.head.lifetime, Lifetime::Forever);
    assert_eq!(entry.head.created_ms, created.created_ms);
    assert!(entry.head.updated_ms >= created.updated_ms + 10_000);
    room.advance(100 * SECOND);
    assert_eq!(space.body("k").await.unwrap(), "second one");
    assert_eq!(space.counts().await, (1, 10));
}

async fn an_expired_entry_is_neither_read_nor_counted(room: Room) {
    let space = room.space("n");
    let put = space.put_for("k", "short", seconds(10)).await;
    space.put_for("long", "long", seconds(1_000)).await;
    room.advance(9 * SECOND);
    assert_eq!(space.body("k").await.unwrap(), "short");
    assert_eq!(space.counts().await, (2, 9));

    room.advance(SECOND);

    assert_eq!(space.get("k").await, None);
    assert_eq!(space.read("k", Reading::Use).await, None);
    assert_eq!(space.keys("", 10).await, ["long"]);
    assert_eq!(space.counts().await, (1, 4));
    assert!(!space.delete("k").await);
    let again = space.put("k", "new").await;
    assert_eq!(again.stamp.version, 1);
    assert_ne!(again.stamp.life, put.stamp.life);
    assert_eq!(space.counts().await, (2, 7));
}

async fn an_expired_entry_counts_as_absent_before_it_is_purged(room: Room) {
    let space = room.space("n");
    // more entries than one purge step deletes
    for number in 0..300 {
        space.put_for(&format!("{number}"), "xx", seconds(10)).await;
    }
    room.advance(10 * SECOND);

    for number in 0..20 {
        let put = space
            .put_for(&format!("{number}"), "yyy", seconds(20))
            .await;
        assert_eq!(put.stamp.version, 1);
    }
    for number in 20..40 {
        assert!(!space.delete(&format!("{number}")).await);
    }

    assert_eq!(space.counts().await, (20, 60));
    assert_eq!(space.keys("", 7).await.len(), 20);
    room.advance(20 * SECOND);
    assert_eq!(space.counts().await, (0, 0));
    assert_eq!(space.usage().await.last_used_ms, None);
}

async fn a_put_after_a_delete_begins_a_new_life(room: Room) {
    let space = room.space("n");
    let first = space.put_for("k", "1", seconds(100)).await;
    space.put("k", "2").await;

    assert!(space.delete("k").await);
    assert!(!space.delete("k").await);

    assert_eq!(space.get("k").await, None);
    assert_eq!(space.counts().await, (0, 0));
    let second = space.put("k", "3").await;
    assert_eq!(second.stamp.version, 1);
    assert_ne!(second.stamp.life, first.stamp.life);
    // the expiry of the first entry does not apply to the second entry
    room.advance(200 * SECOND);
    assert_eq!(space.body("k").await.unwrap(), "3");
    assert_eq!(space.counts().await, (1, 1));
}

async fn an_unmet_condition_changes_nothing(room: Room) {
    let space = room.space("n");
    let absent = Stamp::default();
    let new = Precondition::Version(0);
    assert_eq!(
        space.put_if("k", "x", Precondition::Exists).await,
        Err(absent)
    );
    assert_eq!(
        space.delete_if("k", Precondition::Exists).await,
        Err(absent)
    );
    let refused = room.backend.get_namespace(&space.namespace).await;
    assert_eq!(refused.unwrap(), None);

    let first = space.put_if("k", "1", new).await.unwrap().stamp;
    assert_eq!(space.put_if("k", "x", new).await, Err(first));
    let same = Precondition::Stamp(first);
    let second = space.put_if("k", "2", same).await.unwrap().stamp;
    assert_eq!(space.put_if("k", "x", same).await, Err(second));
    assert_eq!(space.delete_if("k", same).await, Err(second));
    assert_eq!(space.body("k").await.unwrap(), "2");
    assert_eq!(space.counts().await, (1, 1));

    assert_eq!(space.delete_if("k", new).await, Err(second));
    let deleted = space.delete_if("k", Precondition::Stamp(second)).await;
    assert_eq!(deleted, Ok(true));
    assert_eq!(space.delete_if("k", new).await, Ok(false));
    let third = space.put_if("k", "3", new).await.unwrap().stamp;
    assert_eq!(space.put_if("k", "x", same).await, Err(third));
}

async fn an_expired_entry_meets_no_condition(room: Room) {
    let space = room.space("n");
    let old = space.put_for("k", "1", seconds(10)).await.stamp;
    room.advance(10 * SECOND);

    let stale = Precondition::Stamp(old);
    assert_eq!(space.put_if("k", "x", stale).await, Err(Stamp::default()));
    assert_eq!(space.delete_if("k", stale).await, Err(Stamp::default()));
    let created = space.put_if("k", "2", Precondition::Version(0)).await;
    assert_eq!(created.unwrap().stamp.version, 1);
}

async fn a_plain_read_changes_nothing_and_a_use_is_counted(room: Room) {
    let space = room.space("n");
    space.put_for("k", "1", seconds(100)).await;
    let before = space.get("k").await.unwrap();
    room.advance(30 * SECOND);

    assert_eq!(space.get("k").await.unwrap(), before);
    assert_eq!(before.uses, 0);
    for uses in 1..=3 {
        let entry = space.read("k", Reading::Use).await.unwrap();
        assert_eq!(entry.uses, uses);
        assert_eq!(entry.head, before.head);
        assert!(entry.last_used_ms >= before.last_used_ms + 30_000);
        assert_eq!(space.usage().await.last_used_ms, Some(entry.last_used_ms));
    }
    // a put preserves the number of uses; if a deleted entry is created again, its number of uses starts at zero
    space.put("k", "2").await;
    assert_eq!(space.read("k", Reading::Use).await.unwrap().uses, 4);
    space.delete("k").await;
    space.put("k", "3").await;
    assert_eq!(space.get("k").await.unwrap().uses, 0);
}

async fn a_use_extends_a_lifetime_that_is_more_than_half_over(room: Room) {
    let space = room.space("n");
    let end = space
        .put_for("k", "1", seconds(100))
        .await
        .expires_ms
        .unwrap();
    space.put("forever", "1").await;
    room.advance(45 * SECOND);
    let first = space.read("k", Reading::Use).await.unwrap();
    assert_eq!(first.head.expires_ms, Some(end));

    room.advance(10 * SECOND);
    assert_eq!(space.get("k").await.unwrap().head.expires_ms, Some(end));
    let second = space.read("k", Reading::Use).await.unwrap();
    let forever = space.read("forever", Reading::Use).await.unwrap();

    assert_eq!(second.head.expires_ms, Some(second.last_used_ms + 100_000));
    assert_eq!(second.head.stamp, first.head.stamp);
    assert_eq!(forever.head.expires_ms, None);
    room.advance(99 * SECOND);
    assert_eq!(space.body("k").await.unwrap(), "1");
    assert_eq!(space.counts().await, (2, 2));
    let listed = space.page("k", None, KeyOrder::Ascending, 1).await;
    assert_eq!(listed.entries[0].1, second.head);
    room.advance(SECOND);
    assert_eq!(space.get("k").await, None);
    assert_eq!(space.counts().await, (1, 1));
}

async fn read_by_worker(room: &Room, space: &Space) -> Option<threadkeep_store::Entry> {
    let namespaces = room.backend.for_worker();
    let key = super::space::key("k");
    let entry = namespaces.get_entry(&space.namespace, &key, Reading::Plain);
    entry.await.unwrap()
}

async fn all_workers_see_the_same_entries(room: Room) {
    let space = room.space("n");
    space.put("k", "1").await;

    let seen = read_by_worker(&room, &space).await;

    assert_eq!(seen, space.get("k").await);
    assert!(seen.is_some());
}

super::over_every_store_and_confirmed! {
    an_entry_reads_back_byte_for_byte,
    empty_bodies_and_the_longest_names_are_stored,
    a_put_replaces_the_whole_entry,
    an_expired_entry_is_neither_read_nor_counted,
    an_expired_entry_counts_as_absent_before_it_is_purged,
    a_put_after_a_delete_begins_a_new_life,
    an_unmet_condition_changes_nothing,
    an_expired_entry_meets_no_condition,
    a_plain_read_changes_nothing_and_a_use_is_counted,
    a_use_extends_a_lifetime_that_is_more_than_half_over,
    all_workers_see_the_same_entries,
}

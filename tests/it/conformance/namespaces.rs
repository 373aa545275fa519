use std::time::Duration;

use threadkeep_domain::{Fingerprint, Lifetime, Namespace, Precondition};
use threadkeep_store::NewEntry;

use super::room::{Room, in_parallel};
use super::space::{Space, seconds, text};

const SECOND: Duration = Duration::from_secs(1);

async fn default_of(space: &Space) -> Option<Option<Lifetime>> {
    let record = space.backend.get_namespace(&space.namespace).await.unwrap();
    record.map(|record| record.default_lifetime)
}

async fn a_put_without_a_lifetime_uses_the_namespace_default(room: Room) {
    let space = room.space("n");
    let new = NewEntry {
        default_lifetime: Lifetime::For(7 * SECOND),
        ..text("x")
    };
    let lives = async |space: &Space, new: &NewEntry| {
        space.put_entry("k", new).await;
        space.get("k").await.unwrap().head.lifetime
    };

    assert_eq!(lives(&space, &new).await, Lifetime::For(7 * SECOND));
    assert_eq!(default_of(&space).await, Some(None));
    space.set_default(seconds(30)).await;
    assert_eq!(lives(&space, &new).await, Lifetime::For(30 * SECOND));
    space.set_default(Some(Lifetime::Forever)).await;
    assert_eq!(lives(&space, &new).await, Lifetime::Forever);
    let own = NewEntry {
        lifetime: seconds(5),
        ..new.clone()
    };
    assert_eq!(lives(&space, &own).await, Lifetime::For(5 * SECOND));
    assert_eq!(default_of(&space).await, Some(Some(Lifetime::Forever)));
    space.set_default(None).await;
    assert_eq!(lives(&space, &new).await, Lifetime::For(7 * SECOND));
    assert_eq!(
        lives(&room.space("m"), &new).await,
        Lifetime::For(7 * SECOND)
    );
}

async fn opening_an_existing_namespace_changes_nothing(room: Room) {
    let space = room.space("n");
    let open = async || {
        let opened = space.backend.open_namespace(&space.namespace);
        opened.await.unwrap()
    };

    let made = open().await;

    assert_eq!(made.namespace, space.namespace);
    assert_eq!(made.default_lifetime, None);
    assert_eq!(listed(&room, 10).await, ["n"]);
    space.set_default(seconds(30)).await;
    space.put("k", "x").await;
    room.advance(SECOND);
    let existing = open().await;
    assert_eq!(existing.created_ms, made.created_ms);
    assert_eq!(existing.default_lifetime, seconds(30));
    assert_eq!(space.counts().await, (1, 1));
}

async fn listed(room: &Room, limit: usize) -> Vec<String> {
    let mut names = Vec::new();
    let mut after = None;
    loop {
        let page = room.backend.list_namespaces(after.as_ref(), limit);
        let page = page.await.unwrap();
        assert!(page.records.len() <= limit);
        names.extend(page.records.iter().map(|r| r.namespace.as_str().to_owned()));
        after = page.next;
        if after.is_none() {
            return names;
        }
    }
}

async fn the_newest_namespace_is_listed_first(room: Room) {
    assert!(listed(&room, 3).await.is_empty());
    for name in ["c", "a", "é/", "b"] {
        let space = room.space(name);
        match name {
            "a" => space.set_default(seconds(60)).await,
            _ => drop(space.put("k", "x").await),
        }
        room.advance(SECOND);
    }
    // later writes do not move existing namespaces
    room.space("c").put("other", "x").await;
    room.space("a").set_default(None).await;

    for limit in [1, 2, 3, 4, 1_000] {
        assert_eq!(listed(&room, limit).await, ["b", "é/", "a", "c"]);
    }
    let page = room.backend.list_namespaces(None, 2).await.unwrap();
    let of_b = room.backend.get_namespace(&page.records[0].namespace).await;
    assert_eq!(of_b.unwrap().unwrap(), page.records[0]);
    assert_eq!(room.space("b").destroy().await, 1);
    let rest = room.backend.list_namespaces(page.next.as_ref(), 9).await;
    assert_eq!(rest.unwrap().records.len(), 2);
    room.space("a").destroy().await;
    assert_eq!(listed(&room, 10).await, ["é/", "c"]);
}

async fn a_namespace_outlives_its_entries(room: Room) {
    let space = room.space("n");
    space.put("k", "x").await;
    space.delete("k").await;
    space.put_for("k", "x", seconds(10)).await;
    room.advance(10 * SECOND);

    assert_eq!(listed(&room, 10).await, ["n"]);
    assert_eq!(space.counts().await, (0, 0));
}

async fn namespaces_are_measured_together(room: Room) {
    for (name, bodies) in [("a", vec!["1", "22"]), ("b", vec![""]), ("c", vec!["333"])] {
        for (number, body) in bodies.iter().enumerate() {
            room.space(name).put(&format!("{number}"), body).await;
        }
    }
    let names = ["c", "none", "a", "a", "b"].map(|name| Namespace::new(name).unwrap());

    let usages = room.backend.measure(&names).await.unwrap();

    let counts = usages.iter().map(|usage| (usage.entries, usage.bytes));
    let expected = [(1, 3), (0, 0), (2, 3), (2, 3), (1, 0)];
    assert_eq!(counts.collect::<Vec<_>>(), expected);
    assert_eq!(usages[1].last_used_ms, None);
    assert!(usages[0].last_used_ms.is_some());
    assert!(room.backend.measure(&[]).await.unwrap().is_empty());
}

async fn counts_are_exact_under_concurrent_writes(room: Room) {
    let space = room.space("n");
    let writers = (0..8_u64).map(|writer| {
        let space = space.clone();
        in_parallel(async move {
            for step in 0..60_u64 {
                let name = format!("{}", (writer + step * 7) % 13);
                match (writer + step) % 4 {
                    0 => drop(space.delete(&name).await),
                    1 => drop(space.put_for(&name, "short", seconds(1_000)).await),
                    _ => drop(space.put(&name, &"x".repeat(step as usize)).await),
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }

    let agree = async || {
        let keys = space.keys("", 100).await;
        let mut bytes = 0;
        for key in &keys {
            bytes += space.get(key).await.unwrap().head.size_bytes;
        }
        assert_eq!(space.counts().await, (keys.len() as u64, bytes));
        keys.len()
    };
    agree().await;
    room.advance(1_000 * SECOND);
    agree().await;
    for name in 0..13 {
        space.delete(&format!("{name}")).await;
    }
    assert_eq!(agree().await, 0);
}

async fn one_of_several_concurrent_conditional_puts_succeeds(room: Room) {
    let space = room.space("n");
    let stamp = space.put("k", "old").await.stamp;
    let puts = (0..20).map(|number| {
        let space = space.clone();
        in_parallel(async move {
            let same = Precondition::Stamp(stamp);
            space.put_if("k", &format!("{number}"), same).await.is_ok()
        })
    });
    let mut done = 0;
    for put in puts.collect::<Vec<_>>() {
        done += usize::from(put.await.unwrap());
    }

    assert_eq!(done, 1);
    assert_eq!(space.get("k").await.unwrap().head.stamp.version, 2);
}

async fn deleting_a_namespace_removes_its_entries_and_no_others(room: Room) {
    let (space, other) = (room.space("n"), room.space("m"));
    for number in 0..300 {
        let lifetime = seconds(10).filter(|_| number % 3 == 0);
        space.put_for(&format!("{number}"), "x", lifetime).await;
    }
    for number in 0..20 {
        other.put(&format!("{number}"), "y").await;
    }
    space.set_default(seconds(60)).await;
    room.advance(10 * SECOND);

    assert_eq!(space.destroy().await, 200);
    assert_eq!(space.destroy().await, 0);

    assert_eq!(space.counts().await, (0, 0));
    assert!(space.keys("", 100).await.is_empty());
    assert_eq!(space.get("1").await, None);
    assert_eq!(default_of(&space).await, None);
    assert_eq!(other.counts().await, (20, 20));
    assert_eq!(other.body("19").await.unwrap(), "y");
    let again = space.put("1", "z").await;
    assert_eq!((again.stamp.version, again.expires_ms), (1, None));
    assert_eq!(space.keys("", 100).await, ["1"]);
}

/// Returns `count` keys that stores put in one bucket, because the hashes of all these keys start with the same byte.
fn keys_of_one_bucket(space: &Space, count: usize) -> Vec<String> {
    let namespace = space.namespace.as_str().as_bytes();
    let names = (0_u32..).map(|number| number.to_string());
    let of_one = names.filter(|name| Fingerprint::of(&[namespace, name.as_bytes()]).0[0] == 7);
    of_one.take(count).collect()
}

async fn entries_that_share_a_bucket_are_all_listed_purged_and_deleted(room: Room) {
    let space = room.space("n");
    let mut keys = keys_of_one_bucket(&space, 260);
    for (index, key) in keys.iter().enumerate() {
        let lifetime = seconds(10).filter(|_| index < 130);
        space.put_for(key, "xx", lifetime).await;
    }
    let living = keys.split_off(130);

    let mut listed = space.keys("", 20).await;
    assert_eq!(listed.len(), 260);
    room.advance(10 * SECOND);

    assert_eq!(space.counts().await, (130, 260));
    listed.retain(|key| living.contains(key));
    assert_eq!(space.keys("", 20).await, listed);
    assert_eq!(space.destroy().await, 130);
    assert_eq!(space.counts().await, (0, 0));
    assert!(space.keys("", 20).await.is_empty());
    assert_eq!(space.get(&living[129]).await, None);
}

async fn entries_that_survive_a_concurrent_deletion_are_listed(room: Room) {
    let mut survivors = 0;
    for round in 0..60 {
        let space = room.space(&format!("n{round}"));
        space.put("old", "x").await;
        let (writer, deleter) = (space.clone(), space.clone());
        let put_all = async move {
            for number in 0..8 {
                writer.put(&format!("new {number}"), "y").await;
            }
        };
        let delete = async move { deleter.destroy().await };
        // alternate whether the puts or the deletion start first
        let (puts, deletion) = if round % 2 == 0 {
            let puts = in_parallel(put_all);
            (puts, in_parallel(delete))
        } else {
            let deletion = in_parallel(delete);
            (in_parallel(put_all), deletion)
        };
        puts.await.unwrap();
        let deleted = deletion.await.unwrap();

        let keys = space.keys("", 100).await;
        assert!(keys.iter().all(|key| key != "old"));
        assert_eq!(deleted + keys.len() as u64, 9);
        assert_eq!(space.counts().await.0, keys.len() as u64);
        let is_listed = default_of(&space).await.is_some();
        assert!(is_listed || keys.is_empty(), "{keys:?}");
        survivors += keys.len();
    }
    // at least one put must follow a deletion, or the test proves nothing
    assert!(survivors > 0);
}

super::over_every_store_and_confirmed! {
    a_put_without_a_lifetime_uses_the_namespace_default,
    opening_an_existing_namespace_changes_nothing,
    the_newest_namespace_is_listed_first,
    a_namespace_outlives_its_entries,
    namespaces_are_measured_together,
    counts_are_exact_under_concurrent_writes,
    one_of_several_concurrent_conditional_puts_succeeds,
    deleting_a_namespace_removes_its_entries_and_no_others,
    entries_that_share_a_bucket_are_all_listed_purged_and_deleted,
    entries_that_survive_a_concurrent_deletion_are_listed,
}

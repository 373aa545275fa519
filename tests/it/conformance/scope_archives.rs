use std::time::Duration;

use threadkeep_domain::{Life, Refusal, Retention, ThreadPolicy};
use threadkeep_store::HistoryFrom::{After, Before};

use super::room::Room;
use super::scope_room::{increment, item, numbered, set};
use super::thread_scopes::{fill, final_item_count, final_items, is_filled, living};

const SECOND: Duration = Duration::from_secs(1);

async fn the_archive_of_a_life_includes_its_history(room: Room) {
    let (thread, scope) = living(&room).await;
    scope.add(&numbered(1..6)).await;
    let life = thread.stamp().await.life;
    assert_eq!(final_items(&room, &thread, None, After(0), 10).await, None);
    assert_eq!(final_item_count(&room, &thread, life).await, None);

    thread.destroy().await;

    let seqs = async |life, from, limit| {
        let items = final_items(&room, &thread, life, from, limit).await;
        items.map(|items| items.into_iter().map(|item| item.0).collect::<Vec<_>>())
    };
    for life in [None, Some(life)] {
        assert_eq!(seqs(life, After(0), 2).await.unwrap(), [1, 2]);
        assert_eq!(seqs(life, After(2), 9).await.unwrap(), [3, 4, 5]);
        assert_eq!(seqs(life, Before(u64::MAX), 2).await.unwrap(), [5, 4]);
        assert_eq!(seqs(life, Before(2), 9).await.unwrap(), [1]);
    }
    assert_eq!(seqs(Some(Life(life.0 ^ 1)), After(0), 2).await, None);
    let page = room
        .backend
        .read_final_history(&thread.id, None, After(9), 1);
    let summary = page.await.unwrap().unwrap().summary;
    assert_eq!((summary.first_seq, summary.next_seq), (1, 6));
    assert_eq!(summary.bytes, 5 * 66);
}

async fn a_life_without_items_leaves_an_empty_history(room: Room) {
    let (without_scope, _) = living(&room).await;
    without_scope.destroy().await;
    let (without_items, scope) = living(&room).await;
    scope.run(&[set("k", "1")]).await;
    without_items.destroy().await;

    for thread in [without_scope, without_items] {
        let last = final_items(&room, &thread, None, After(0), 10).await;
        assert_eq!(last, Some(Vec::new()));
    }
    let never = room.subject();
    assert_eq!(final_items(&room, &never, None, After(0), 10).await, None);
}

async fn each_life_leaves_its_own_history(room: Room) {
    let (thread, scope) = living(&room).await;
    let mut lives = Vec::new();
    for number in 1..4 {
        thread.merge(&[]).await;
        lives.push(thread.stamp().await.life);
        scope.add(&[item("id", &number.to_string())]).await;
        thread.destroy().await;
        room.advance(ThreadPolicy::THREAD.tombstone);
    }

    for (number, life) in (1..).zip(lives) {
        let items = final_items(&room, &thread, Some(life), After(0), 10).await;
        assert_eq!(items.unwrap(), [(1, "id".into(), format!("{number}"))]);
    }
    let newest = final_items(&room, &thread, None, After(0), 10).await;
    assert_eq!(newest.unwrap()[0].2, "3");
}

async fn a_final_history_is_deleted_with_its_archive(room: Room) {
    let room = room
        .keeping(Retention {
            archive: 1_000 * SECOND,
            log: 500 * SECOND,
            ..Retention::DEFAULT
        })
        .await;
    let (thread, scope) = living(&room).await;
    fill(&scope).await;
    let life = thread.stamp().await.life;
    thread.destroy().await;

    room.advance(990 * SECOND);
    assert_eq!(final_item_count(&room, &thread, life).await, Some(2));
    room.advance(10 * SECOND);

    assert_eq!(final_item_count(&room, &thread, life).await, None);
    room.tidy().await;
    assert_eq!(final_items(&room, &thread, None, After(0), 10).await, None);
}

async fn a_scope_is_restored_with_its_thread(room: Room) {
    for is_destroyed in [true, false] {
        let (thread, scope) = living(&room).await;
        fill(&scope).await;
        let before = scope.view().await.unwrap();
        if is_destroyed {
            thread.destroy().await;
        } else {
            room.advance(ThreadPolicy::THREAD.ttl);
            room.reap().await;
        }

        let restored = room.backend.restore(&thread.id, None, &thread.policy).await;
        let restored = restored.unwrap().unwrap();

        assert!(is_filled(&scope).await);
        let after = scope.view().await.unwrap();
        assert_eq!(after.stamp.life, restored.stamp.life);
        assert_ne!(after.stamp.life, before.stamp.life);
        assert_eq!(after.stamp.version, before.stamp.version);
        assert_eq!(after.tasks_stamp.version, before.tasks_stamp.version);
        assert_eq!(after.tasks_stamp.life, restored.stamp.life);
        assert_eq!(after.created_ms, before.created_ms);
        assert_eq!((after.key_count, after.kv_bytes), (2, 2));
        let life = before.stamp.life;
        let last = room.backend.get_final(&thread.id, life).await.unwrap();
        assert!(last.unwrap().head.history.is_empty());
        let life = Some(life);
        assert_eq!(final_items(&room, &thread, life, After(0), 10).await, None);
    }
}

async fn a_restored_scope_continues_from_its_old_content(room: Room) {
    let (thread, scope) = living(&room).await;
    fill(&scope).await;
    let life = thread.stamp().await.life;
    thread.destroy().await;
    let restored = room.backend.restore(&thread.id, Some(life), &thread.policy);
    restored.await.unwrap().unwrap();

    let added = scope.add(&[item("2", "[]"), item("3", "3")]).await;
    assert_eq!(added, [(2, true), (3, false)]);
    let reused = scope.try_add(&[item("1", "77")]).await;
    assert_eq!(reused, Err(Refusal::ItemIdReused { item: 0 }));
    let written = scope.run(&[increment("n", 1), set("m", "")]).await;
    assert_eq!((written.stamp.version, written.keys), (6, 3));
    let tasks = scope.view().await.unwrap().tasks_stamp;
    assert!(scope.put_tasks(&["c"], Some(tasks)).await.is_ok());
    room.advance(ThreadPolicy::THREAD.ttl - 10 * SECOND);
    assert_eq!(scope.items().await.len(), 3);

    let life = thread.stamp().await.life;
    thread.destroy().await;
    assert_eq!(final_item_count(&room, &thread, life).await, Some(3));
    let again = room.backend.restore(&thread.id, None, &thread.policy).await;
    again.unwrap().unwrap();
    assert_eq!(scope.value("n").await.unwrap(), "8");
    assert_eq!(scope.tasks().await, ["c"]);
}

async fn a_sealed_scope_is_restored_sealed(room: Room) {
    let (thread, scope) = living(&room).await;
    scope.seal().await;
    thread.destroy().await;
    let restored = room.backend.restore(&thread.id, None, &thread.policy);
    restored.await.unwrap().unwrap();

    assert!(scope.view().await.unwrap().is_sealed);
    assert_eq!(scope.try_run(&[]).await, Err(Refusal::ScopeEnded));
}

async fn a_life_without_a_scope_is_restored_without_one(room: Room) {
    let (thread, scope) = living(&room).await;
    let without = thread.stamp().await.life;
    thread.destroy().await;
    room.advance(ThreadPolicy::THREAD.tombstone);
    thread.merge(&[]).await;
    fill(&scope).await;
    thread.destroy().await;

    let restored = room
        .backend
        .restore(&thread.id, Some(without), &thread.policy);
    restored.await.unwrap().unwrap();

    assert_eq!(scope.view().await, None);
    assert_eq!(scope.run(&[set("new", "1")]).await.keys, 1);
    assert!(scope.items().await.is_empty());
}

async fn a_large_history_is_restored_completely(room: Room) {
    let (thread, scope) = living(&room).await;
    for thousand in 0..3 {
        let items = numbered(thousand * 1_000 + 1..thousand * 1_000 + 1_001);
        scope.add(&items).await;
    }
    let items = scope.items().await;
    thread.destroy().await;

    let last = final_items(&room, &thread, None, After(0), 10_000).await;
    let restored = room.backend.restore(&thread.id, None, &thread.policy);
    restored.await.unwrap().unwrap();

    assert_eq!(items.len(), 3_000);
    assert_eq!(last.unwrap(), items);
    assert_eq!(scope.items().await, items);
}

super::over_every_store! {
    the_archive_of_a_life_includes_its_history,
    a_life_without_items_leaves_an_empty_history,
    each_life_leaves_its_own_history,
    a_final_history_is_deleted_with_its_archive,
    a_scope_is_restored_with_its_thread,
    a_restored_scope_continues_from_its_old_content,
    a_sealed_scope_is_restored_sealed,
    a_life_without_a_scope_is_restored_without_one,
    a_large_history_is_restored_completely,
}

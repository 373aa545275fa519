use threadkeep_domain::scope::{KvAnswer, Lifetime, ScopeWrite};
use threadkeep_domain::{Conditions, Precondition, Refusal, Stamp};
use threadkeep_store::HistoryFrom;

use super::room::{self, Room};
use super::scope_room::{Place, increment, item, set, set_if_absent};

async fn some_scopes_come_into_being_at_the_first_write(room: Room) {
    for place in [room.session(), room.tool(), room.scope("personality:p")] {
        assert_eq!(place.run(&[set("k", "1")]).await.stamp.version, 1);
        assert!(place.exists().await);
    }
}

async fn others_must_have_been_made(room: Room) {
    for place in [
        room.handle(),
        room.scope("run:6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11"),
    ] {
        let refused = place.try_run(&[set("k", "1")]).await;
        assert_eq!(refused, Err(Refusal::ScopeNotFound));
        assert!(!place.exists().await);

        assert_eq!(place.make().await.stamp.version, 1);
        assert_eq!(place.run(&[set("k", "1")]).await.stamp.version, 2);

        assert!(place.end().await);
        let ended = place.try_run(&[set("k", "1")]).await;
        assert_eq!(ended, Err(Refusal::ScopeNotFound));
    }
}

async fn what_exists_is_not_made_again(room: Room) {
    for place in [room.handle(), room.session()] {
        let write = ScopeWrite {
            makes: true,
            operations: &[set("k", "1")],
            ..place.blank()
        };
        place.write(&write).await.unwrap();
        let before = place.whole().await;

        let again = ScopeWrite {
            operations: &[set("k", "2")],
            ..write
        };
        assert_eq!(place.write(&again).await, Err(Refusal::ScopeExists));
        assert_eq!(place.whole().await, before);

        place.end().await;
        let anew = place.write(&again).await;
        assert_eq!(anew.unwrap().stamp.version, 1);
    }
}

async fn a_write_that_makes_is_refused_whole(room: Room) {
    let handle = room.handle();
    let write = ScopeWrite {
        makes: true,
        operations: &[set("k", "text"), increment("k", 1)],
        ..handle.blank()
    };

    let refused = handle.write(&write).await;

    let operation = 1;
    assert_eq!(refused, Err(Refusal::NotAnInteger { operation }));
    assert_eq!(handle.try_run(&[]).await, Err(Refusal::ScopeNotFound));
}

async fn that_there_is_none_is_seen_before_a_precondition(room: Room) {
    let handle = room.handle();
    let unmet = Some(Precondition::Version(7));
    let write = ScopeWrite {
        conditions: Conditions {
            precondition: unmet,
            ..Conditions::default()
        },
        ..handle.blank()
    };
    assert_eq!(handle.write(&write).await, Err(Refusal::ScopeNotFound));
    handle.make().await;

    let makes = ScopeWrite {
        makes: true,
        ..write
    };
    assert_eq!(handle.write(&makes).await, Err(Refusal::ScopeExists));
    handle.seal().await;

    assert_eq!(handle.write(&makes).await, Err(Refusal::ScopeExists));
    assert_eq!(handle.write(&write).await, Err(Refusal::ScopeEnded));
}

async fn a_sealed_scope_is_read_and_takes_no_more_writes(room: Room) {
    let session = room.session();
    let last = ScopeWrite {
        operations: &[set("k", "1")],
        history: &[item("1", "1")],
        seals: true,
        ..session.blank()
    };
    session.write(&last).await.unwrap();
    let before = session.whole().await;

    let set_refused = session.try_run(&[set("k", "2")]).await;
    let repeated_item = session.try_add(&[item("1", "1")]).await;
    let tasks = session.put_tasks(&["t"], None).await;
    let nothing = session.try_run(&[]).await;

    assert_eq!(set_refused, Err(Refusal::ScopeEnded));
    assert_eq!(repeated_item, Err(Refusal::ScopeEnded));
    assert_eq!(tasks, Err(Refusal::ScopeEnded));
    assert_eq!(nothing, Err(Refusal::ScopeEnded));
    assert!(session.view().await.unwrap().is_sealed);
    assert_eq!(session.whole().await, before);
    assert!(session.end().await);
    assert_eq!(session.run(&[]).await.stamp.version, 1);
    assert!(!session.view().await.unwrap().is_sealed);
}

async fn an_end_leaves_nothing(room: Room) {
    let session = room.session();
    let before = session.run(&[set("old", "1")]).await.stamp;
    session.put_tasks(&["t"], None).await.unwrap();
    session.put_record("r", None).await.unwrap();
    session.add(&[item("1", "1"), item("2", "2")]).await;

    assert!(session.end().await);

    assert_eq!(session.view().await, None);
    assert_eq!(session.page(HistoryFrom::After(0), 10).await, None);
    let after = session.run(&[set("new", "1")]).await.stamp;
    assert_eq!(after.version, 1);
    assert_ne!(after.life, before.life);
    let view = session.view().await.unwrap();
    assert_eq!(session.keys().await, ["new"]);
    assert!(view.tasks.is_empty());
    assert_eq!((view.tasks_stamp.version, view.record), (0, None));
    assert_eq!(session.add(&[item("1", "77")]).await, [(1, false)]);
}

async fn an_end_of_nothing_is_none(room: Room) {
    for place in [room.session(), room.handle()] {
        assert!(!place.end().await);
        assert_eq!(place.end_if(Some(0)).await, Ok(false));
        assert!(!place.exists().await);
    }
    let session = room.session();
    session.run(&[]).await;
    assert!(session.end().await);
    assert!(!session.end().await);
}

async fn an_end_of_another_version_is_refused(room: Room) {
    let session = room.session();
    let unmet = |current| Err(Refusal::VersionMismatch { current });
    assert_eq!(session.end_if(Some(1)).await, unmet(Stamp::default()));
    session.run(&[set("k", "1")]).await;
    let current = session.run(&[set("k", "2")]).await.stamp;
    let before = session.whole().await;

    assert_eq!(session.end_if(Some(1)).await, unmet(current));
    assert_eq!(session.end_if(Some(0)).await, unmet(current));
    assert_eq!(session.whole().await, before);

    assert_eq!(session.end_if(Some(2)).await, Ok(true));
    assert!(!session.exists().await);
}

async fn neighbours(room: &Room) -> Vec<Place> {
    let thread = room.subject();
    thread.merge(&[room::set("k", "1")]).await;
    let uuid = "6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11";
    let mut texts = vec![format!("thread:{}", thread.id)];
    let id = thread.id.to_string();
    for id in [
        uuid, &id, "k", "K", "a:b", "a", "*", "{1}", "k:k", "é", "e\u{301}",
    ] {
        for kind in ["session", "tool", "personality"] {
            texts.push(format!("{kind}:{id}"));
        }
    }
    texts.extend(["state", "run"].map(|kind| format!("{kind}:{uuid}")));
    texts.push("session:session:k".to_owned());
    texts.iter().map(|text| room.scope(text)).collect()
}

async fn no_scope_has_anything_of_another(room: Room) {
    let places = neighbours(&room).await;
    let mut lives = Vec::new();
    for (number, place) in places.iter().enumerate() {
        if place.policy.is_made {
            place.make().await;
        }
        let text = place.scope.to_string();
        let mine = place.step(set_if_absent("k", &text)).await;
        assert_eq!(mine, KvAnswer::Set(true), "{text}");
        place.put_tasks(&[&text], None).await.unwrap();
        place.put_record(&text, None).await.unwrap();
        let value = format!("{number}");
        assert_eq!(place.add(&[item("one", &value)]).await, [(1, false)]);
        lives.push(place.stamp().await.life);
    }

    for (number, place) in places.iter().enumerate() {
        let text = place.scope.to_string();
        assert_eq!(place.value("k").await.unwrap(), text);
        assert_eq!(place.tasks().await, [&*text]);
        assert_eq!(place.record().await.unwrap(), text);
        assert_eq!(
            place.items().await,
            [(1, "one".into(), format!("{number}"))]
        );
    }
    lives.sort_unstable();
    lives.dedup();
    assert_eq!(lives.len(), places.len());
}

async fn an_end_ends_no_other(room: Room) {
    let places = neighbours(&room).await;
    for place in &places {
        if place.policy.is_made {
            place.make().await;
        }
        place.run(&[set("k", "1")]).await;
        place.add(&[item("one", "1")]).await;
    }

    for (number, place) in places.iter().enumerate() {
        assert!(place.end().await);
        assert!(!place.exists().await);
        for other in &places[number + 1..] {
            assert_eq!(other.value("k").await.unwrap(), "1");
            assert_eq!(other.items().await.len(), 1);
        }
    }
}

async fn ids_in_other_spellings_are_one_scope(room: Room) {
    let upper = room.scope("run:6C8B7F2E-3F4A-4A65-9C1E-0F9F3C7C2D12");
    let plain = room.scope("run:6c8b7f2e3f4a4a659c1e0f9f3c7c2d12");
    upper.make().await;

    plain.run(&[set("k", "1")]).await;

    assert_eq!(upper.value("k").await.unwrap(), "1");
}

async fn the_documented_lifetimes_are_kept(room: Room) {
    let days = |days: u64| std::time::Duration::from_secs(days * 86_400);
    assert_eq!(room.session().policy.lifetime, Lifetime::Idle(days(30)));
    let run = room.scope("run:6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11");
    assert_eq!(run.policy.lifetime, Lifetime::Idle(days(7)));
    run.make().await;
    let session = room.session();
    let tool = room.tool();
    for place in [&session, &tool] {
        place.run(&[]).await;
    }

    room.advance(days(7));
    assert!(!run.exists().await);
    assert!(session.exists().await);
    room.advance(days(30));

    assert!(!session.exists().await);
    assert!(tool.exists().await);
}

super::over_every_store! {
    some_scopes_come_into_being_at_the_first_write,
    others_must_have_been_made,
    what_exists_is_not_made_again,
    a_write_that_makes_is_refused_whole,
    that_there_is_none_is_seen_before_a_precondition,
    a_sealed_scope_is_read_and_takes_no_more_writes,
    an_end_leaves_nothing,
    an_end_of_nothing_is_none,
    an_end_of_another_version_is_refused,
    no_scope_has_anything_of_another,
    an_end_ends_no_other,
    ids_in_other_spellings_are_one_scope,
    the_documented_lifetimes_are_kept,
}

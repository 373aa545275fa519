use threadkeep_domain::scope::{KvAnswer, Lifetime, ScopeWrite};
use threadkeep_domain::{Conditions, Precondition, Refusal, Stamp};
use threadkeep_store::HistoryFrom;

use super::room::{self, Room};
use super::scope_room::{Scope, increment, item, set, set_if_absent};

async fn the_first_write_creates_some_scopes(room: Room) {
    for scope in [room.session(), room.tool(), room.scope("personality:p")] {
        assert_eq!(scope.run(&[set("k", "1")]).await.stamp.version, 1);
        assert!(scope.exists().await);
    }
}

async fn other_scopes_must_be_created_explicitly(room: Room) {
    for scope in [
        room.handle(),
        room.scope("run:6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11"),
    ] {
        let refused = scope.try_run(&[set("k", "1")]).await;
        assert_eq!(refused, Err(Refusal::ScopeNotFound));
        assert!(!scope.exists().await);

        assert_eq!(scope.make().await.stamp.version, 1);
        assert_eq!(scope.run(&[set("k", "1")]).await.stamp.version, 2);

        assert!(scope.end().await);
        let ended = scope.try_run(&[set("k", "1")]).await;
        assert_eq!(ended, Err(Refusal::ScopeNotFound));
    }
}

async fn an_existing_scope_cannot_be_created_again(room: Room) {
    for scope in [room.handle(), room.session()] {
        let write = ScopeWrite {
            makes: true,
            operations: &[set("k", "1")],
            ..scope.blank()
        };
        scope.write(&write).await.unwrap();
        let before = scope.whole().await;

        let again = ScopeWrite {
            operations: &[set("k", "2")],
            ..write
        };
        assert_eq!(scope.write(&again).await, Err(Refusal::ScopeExists));
        assert_eq!(scope.whole().await, before);

        scope.end().await;
        let anew = scope.write(&again).await;
        assert_eq!(anew.unwrap().stamp.version, 1);
    }
}

async fn a_refused_creation_creates_nothing(room: Room) {
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

async fn existence_is_checked_before_a_precondition(room: Room) {
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

async fn a_sealed_scope_can_be_read_but_not_written(room: Room) {
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

async fn ending_a_missing_scope_returns_false(room: Room) {
    for scope in [room.session(), room.handle()] {
        assert!(!scope.end().await);
        assert_eq!(scope.end_if(Some(0)).await, Ok(false));
        assert!(!scope.exists().await);
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

async fn neighbours(room: &Room) -> Vec<Scope> {
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

async fn scopes_do_not_share_content(room: Room) {
    let scopes = neighbours(&room).await;
    let mut lives = Vec::new();
    for (number, scope) in scopes.iter().enumerate() {
        if scope.policy.is_made {
            scope.make().await;
        }
        let text = scope.id.to_string();
        let mine = scope.step(set_if_absent("k", &text)).await;
        assert_eq!(mine, KvAnswer::Set(true), "{text}");
        scope.put_tasks(&[&text], None).await.unwrap();
        scope.put_record(&text, None).await.unwrap();
        let value = format!("{number}");
        assert_eq!(scope.add(&[item("one", &value)]).await, [(1, false)]);
        lives.push(scope.stamp().await.life);
    }

    for (number, scope) in scopes.iter().enumerate() {
        let text = scope.id.to_string();
        assert_eq!(scope.value("k").await.unwrap(), text);
        assert_eq!(scope.tasks().await, [&*text]);
        assert_eq!(scope.record().await.unwrap(), text);
        assert_eq!(
            scope.items().await,
            [(1, "one".into(), format!("{number}"))]
        );
    }
    lives.sort_unstable();
    lives.dedup();
    assert_eq!(lives.len(), scopes.len());
}

async fn an_end_leaves_other_scopes(room: Room) {
    let scopes = neighbours(&room).await;
    for scope in &scopes {
        if scope.policy.is_made {
            scope.make().await;
        }
        scope.run(&[set("k", "1")]).await;
        scope.add(&[item("one", "1")]).await;
    }

    for (number, scope) in scopes.iter().enumerate() {
        assert!(scope.end().await);
        assert!(!scope.exists().await);
        for other in &scopes[number + 1..] {
            assert_eq!(other.value("k").await.unwrap(), "1");
            assert_eq!(other.items().await.len(), 1);
        }
    }
}

async fn different_spellings_of_an_id_are_one_scope(room: Room) {
    let upper = room.scope("run:6C8B7F2E-3F4A-4A65-9C1E-0F9F3C7C2D12");
    let plain = room.scope("run:6c8b7f2e3f4a4a659c1e0f9f3c7c2d12");
    upper.make().await;

    plain.run(&[set("k", "1")]).await;

    assert_eq!(upper.value("k").await.unwrap(), "1");
}

async fn the_documented_lifetimes_apply(room: Room) {
    let days = |days: u64| std::time::Duration::from_secs(days * 86_400);
    assert_eq!(room.session().policy.lifetime, Lifetime::Idle(days(30)));
    let run = room.scope("run:6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11");
    assert_eq!(run.policy.lifetime, Lifetime::Idle(days(7)));
    run.make().await;
    let session = room.session();
    let tool = room.tool();
    for scope in [&session, &tool] {
        scope.run(&[]).await;
    }

    room.advance(days(7));
    assert!(!run.exists().await);
    assert!(session.exists().await);
    room.advance(days(30));

    assert!(!session.exists().await);
    assert!(tool.exists().await);
}

super::over_every_store! {
    the_first_write_creates_some_scopes,
    other_scopes_must_be_created_explicitly,
    an_existing_scope_cannot_be_created_again,
    a_refused_creation_creates_nothing,
    existence_is_checked_before_a_precondition,
    a_sealed_scope_can_be_read_but_not_written,
    an_end_leaves_nothing,
    ending_a_missing_scope_returns_false,
    an_end_of_another_version_is_refused,
    scopes_do_not_share_content,
    an_end_leaves_other_scopes,
    different_spellings_of_an_id_are_one_scope,
    the_documented_lifetimes_apply,
}

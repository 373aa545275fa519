use std::time::Duration;

use threadkeep_domain::{
    Access, Conditions, Fork, Included, Owner, Precondition, Refusal, TakeTurn, ThreadId,
    TurnState, TurnToken, Written,
};
use threadkeep_store::{ThreadOrder, WriteError};

use super::images::{content, export, filled, without_expiry};
use super::room::{Room, Subject, json, once, set};
use super::scope_room::{self, item};

const SECOND: Duration = Duration::from_secs(1);

/// Returns two subjects with new ids: the first in the bucket (partition) of `source`, the second in another bucket.
pub(super) fn ids(room: &Room, source: &Subject) -> [Subject; 2] {
    let bucket = room.backend.bucket_of(&source.id);
    let find = |is_near: bool| loop {
        let id = ThreadId::random();
        if (room.backend.bucket_of(&id) == bucket) == is_near {
            return Subject {
                id,
                ..source.clone()
            };
        }
    };
    [find(true), find(false)]
}

pub(super) fn fork(source: &Subject) -> Fork<'_> {
    Fork {
        included: Included::ALL,
        checkpoint: None,
        until: None,
        metadata: None,
        owner: None,
        has_reservation: true,
        ttl: None,
        policy: &source.policy,
        conditions: Conditions::default(),
    }
}

async fn try_fork(
    room: &Room,
    source: &Subject,
    copy: &Subject,
    fork: &Fork<'_>,
) -> Result<Written, Refusal> {
    match room.backend.fork(&source.id, &copy.id, fork).await {
        Ok(written) => Ok(written),
        Err(WriteError::Refused(refusal)) => Err(refusal),
        Err(WriteError::Store(error)) => panic!("{error:?}"),
    }
}

async fn a_fork_copies_the_whole_source(room: Room) {
    let source = filled(&room).await;
    let image = export(&source, &room).await.unwrap();
    for copy in ids(&room, &source) {
        let written = try_fork(&room, &source, &copy, &fork(&source))
            .await
            .unwrap();

        assert_eq!(written.stamp.version, 1);
        assert_ne!(written.stamp.life, image.thread.stamp.life);
        let object = copy.thread().await.map(without_expiry);
        assert_eq!(written.thread.map(without_expiry), object);
        let forked = export(&copy, &room).await.unwrap();
        let (thread, state, scope) = content(&forked);
        assert_eq!((state, scope), (content(&image).1, image.scope.clone()));
        assert_eq!(
            (thread.ttl, &thread.owner),
            (image.thread.ttl, &image.thread.owner)
        );
        assert!(thread.created_ms >= image.thread.created_ms);
        assert_eq!(thread.created_ms, thread.updated_ms);
        let metadata = format!(
            r#"{{"title":"a","n":1.0,"forked_from":{{"thread_id":"{}","version":4}}}}"#,
            source.id
        );
        assert_eq!(thread.metadata.as_str(), metadata);
        let unchanged = export(&source, &room).await.unwrap();
        assert_eq!(content(&unchanged), content(&image));
        assert_eq!(
            room.story(&copy).await,
            [
                r#"#1 v1 created ["a\"key\\","empty","large","number","small","text"]"#.to_owned(),
                format!("#2 v1 forked {} v4", source.id),
            ]
        );
    }
}

async fn a_fork_and_its_source_change_independently(room: Room) {
    let source = filled(&room).await;
    for copy in ids(&room, &source) {
        try_fork(&room, &source, &copy, &fork(&source))
            .await
            .unwrap();

        copy.merge(&[set("text", "1"), set("large", "[]")]).await;
        room.scope_of(&copy)
            .run(&[scope_room::set("c", "copy")])
            .await;
        room.scope_of(&copy).add(&[item("3", "3")]).await;

        assert_eq!(
            source.value("text").await.unwrap(),
            r#"{"b":1.0,"a":[],"a":{}}"#
        );
        assert_eq!(room.scope_of(&source).value("c").await.unwrap(), "");
        assert_eq!(room.scope_of(&source).items().await.len(), 2);
        assert_eq!(room.scope_of(&copy).items().await.len(), 3);
        assert!(source.destroy().await.existed);
        assert_eq!(room.scope_of(&copy).items().await.len(), 3);
        room.backend
            .restore(&source.id, None, &source.policy)
            .await
            .unwrap();
    }
}

async fn a_fork_copies_only_the_included_parts(room: Room) {
    let source = filled(&room).await;
    let none = Included {
        state: false,
        scope: false,
        history: false,
    };
    for copy in ids(&room, &source) {
        let parts = [
            (none, [false, false, false]),
            (
                Included {
                    state: true,
                    ..none
                },
                [true, false, false],
            ),
            (
                Included {
                    scope: true,
                    ..none
                },
                [false, true, false],
            ),
            (
                Included {
                    history: true,
                    ..none
                },
                [false, false, true],
            ),
        ];
        for (included, [state, scope, history]) in parts {
            let [near, far] = ids(&room, &source);
            let is_near = room.backend.bucket_of(&copy.id) == room.backend.bucket_of(&source.id);
            let copy = if is_near { near } else { far };
            let fork = Fork {
                included,
                ..fork(&source)
            };
            let written = try_fork(&room, &source, &copy, &fork).await.unwrap();

            let image = export(&copy, &room).await.unwrap();
            assert_eq!(!image.state.is_empty(), state);
            assert_eq!(written.size_bytes, image.state.size_bytes());
            let copied = image.scope.as_ref();
            assert_eq!(copied.is_some(), scope || history);
            assert_eq!(copied.is_some_and(|copied| !copied.keys.is_empty()), scope);
            assert_eq!(copied.is_some_and(|copied| !copied.tasks.is_empty()), scope);
            assert_eq!(
                copied.is_some_and(|copied| !copied.items.is_empty()),
                history
            );
            // a copied scope or history does not reuse positions
            let appended = room.scope_of(&copy).add(&[item("3", "3")]).await;
            let position = if scope || history { 3 } else { 1 };
            assert_eq!(appended, [(position, false)]);
            copy.merge(&[set("k", "1")]).await;
        }
    }
}

async fn a_fork_may_copy_a_history_up_to_a_position(room: Room) {
    let source = filled(&room).await;
    let scope = room.scope_of(&source);
    let all = scope.items().await;
    for (until, count) in [(0, 0), (all[0].0, 1), (all[1].0, 2), (1_000, 2)] {
        for copy in ids(&room, &source) {
            let fork = Fork {
                until: Some(until),
                ..fork(&source)
            };
            try_fork(&room, &source, &copy, &fork).await.unwrap();

            let copied = room.scope_of(&copy);
            let items = match count {
                0 => Vec::new(),
                _ => copied.items().await,
            };
            assert_eq!(items, all[..count], "{until}");
            assert_eq!(copied.value("c").await, scope.value("c").await);
            // the id of an item that was not copied can be added again, and gets a new position
            let (_, id, value) = all.last().unwrap();
            let again = copied.add(&[item(id, value)]).await;
            let expected = if count == 2 { (2, true) } else { (3, false) };
            assert_eq!(again, [expected], "{until}");
        }
    }
    assert_eq!(scope.items().await, all);
}

async fn a_fork_takes_the_requested_metadata_owner_and_ttl(room: Room) {
    let source = filled(&room).await;
    let owner = Owner::new("another").unwrap();
    let metadata = json(r#"{"forked_from":1,"mine":{}}"#);
    for copy in ids(&room, &source) {
        let fork = Fork {
            metadata: Some(&metadata),
            owner: Some(&owner),
            ttl: Some(100 * SECOND),
            ..fork(&source)
        };
        let written = try_fork(&room, &source, &copy, &fork).await.unwrap();

        let thread = written.thread.unwrap();
        let expected = format!(
            r#"{{"mine":{{}},"forked_from":{{"thread_id":"{}","version":4}}}}"#,
            source.id
        );
        assert_eq!(thread.metadata.as_str(), expected);
        assert_eq!(
            (thread.owner.as_ref(), thread.ttl),
            (Some(&owner), 100 * SECOND)
        );
        let order = ThreadOrder::Created;
        let page = room
            .backend
            .list_owned(owner.tag(), order, None, 10)
            .await
            .unwrap();
        assert!(page.threads.iter().any(|((_, id), _)| *id == copy.id));
        room.advance(99 * SECOND);
        assert!(copy.exists().await);
        room.advance(101 * SECOND);
        assert!(!copy.exists().await);
    }
}

async fn a_fork_checks_conditions_and_extends_the_source_lifetime(room: Room) {
    let source = filled(&room).await;
    let stamp = source.stamp().await;
    room.advance(SECOND);
    let other = Owner::new("another").unwrap();
    for copy in ids(&room, &source) {
        let plain = fork(&source);
        for (refused, refusal) in [
            (
                Fork {
                    conditions: Conditions {
                        access: Access::Of(other.tag()),
                        ..plain.conditions
                    },
                    ..plain
                },
                Refusal::NotTheOwner,
            ),
            (
                Fork {
                    conditions: Conditions {
                        access: Access::Unowned,
                        ..plain.conditions
                    },
                    ..plain
                },
                Refusal::OwnerRequired,
            ),
            (
                Fork {
                    conditions: Conditions {
                        precondition: Some(Precondition::Version(3)),
                        ..plain.conditions
                    },
                    ..plain
                },
                Refusal::VersionMismatch { current: stamp },
            ),
            (
                Fork {
                    conditions: Conditions {
                        turn: Some(TurnToken::random()),
                        ..plain.conditions
                    },
                    ..plain
                },
                Refusal::TurnLost,
            ),
        ] {
            let answer = try_fork(&room, &source, &copy, &refused).await;
            assert_eq!(answer.unwrap_err(), refusal);
        }
        let before = source.thread().await.unwrap().expires_ms;
        room.advance(SECOND);
        let fork = Fork {
            conditions: Conditions {
                precondition: Some(Precondition::Stamp(stamp)),
                ..plain.conditions
            },
            ..plain
        };
        try_fork(&room, &source, &copy, &fork).await.unwrap();
        let image = export(&source, &room).await.unwrap();
        assert!(image.thread.expires_ms >= before + 1_000, "{before}");
    }
}

async fn a_turn_of_the_source_is_not_copied_and_blocks_no_fork(room: Room) {
    let source = filled(&room).await;
    let take = TakeTurn {
        token: TurnToken::random(),
        ttl: 30 * SECOND,
        exclusive: true,
        waits: false,
        idempotency: None,
    };
    room.backend
        .take_turn(&source.id, Access::All, &take)
        .await
        .unwrap();
    for copy in ids(&room, &source) {
        let fork = Fork {
            conditions: Conditions {
                turn: (room.backend.bucket_of(&copy.id) % 2 == 0).then_some(take.token),
                ..Conditions::default()
            },
            ..fork(&source)
        };
        try_fork(&room, &source, &copy, &fork).await.unwrap();

        let turn = room.backend.get_turn(&copy.id, Access::All).await;
        assert_eq!(turn.unwrap(), TurnState::default());
        copy.merge(&[set("k", "1")]).await;
    }
}

async fn a_fork_needs_a_source_and_an_unused_id(room: Room) {
    let source = filled(&room).await;
    let absent = room.subject();
    for copy in ids(&room, &absent) {
        let refused = try_fork(&room, &absent, &copy, &fork(&absent)).await;
        assert_eq!(refused.unwrap_err(), Refusal::ThreadNotFound);
        assert!(!copy.exists().await);
    }
    for copy in ids(&room, &source) {
        copy.merge(&[set("k", "1")]).await;
        let refused = try_fork(&room, &source, &copy, &fork(&source)).await;
        assert_eq!(refused.unwrap_err(), Refusal::ThreadExists);
        assert_eq!(copy.state().await.unwrap(), r#"{"k":1}"#);
        copy.destroy().await;
        let refused = try_fork(&room, &source, &copy, &fork(&source)).await;
        assert_eq!(refused.unwrap_err(), Refusal::Destroyed);
        room.advance(copy.policy.tombstone + SECOND);
        try_fork(&room, &source, &copy, &fork(&source))
            .await
            .unwrap();
    }
    let refused = try_fork(&room, &source, &source, &fork(&source)).await;
    assert_eq!(refused.unwrap_err(), Refusal::ThreadExists);
}

async fn a_repeated_fork_returns_the_first_answer_even_without_the_source(room: Room) {
    let source = filled(&room).await;
    for (number, copy) in ids(&room, &source).into_iter().enumerate() {
        let fork = Fork {
            conditions: Conditions {
                idempotency: Some(once(&number.to_string(), "request")),
                ..Conditions::default()
            },
            ..fork(&source)
        };
        let first = try_fork(&room, &source, &copy, &fork).await.unwrap();
        source.destroy().await;

        let again = try_fork(&room, &source, &copy, &fork).await.unwrap();

        assert!(again.replayed && !first.replayed);
        assert_eq!((again.stamp, again.thread), (first.stamp, first.thread));
        let other = Fork {
            conditions: Conditions {
                idempotency: Some(once(&number.to_string(), "another request")),
                ..fork.conditions
            },
            ..fork
        };
        let reused = try_fork(&room, &source, &copy, &other).await.unwrap_err();
        assert_eq!(reused, Refusal::IdempotencyKeyReused);
        room.backend
            .restore(&source.id, None, &source.policy)
            .await
            .unwrap();
    }
}

async fn a_long_history_is_copied(room: Room) {
    let source = room.subject();
    source.merge(&[set("k", "1")]).await;
    let scope = room.scope_of(&source);
    for portion in 0..6 {
        let items: Vec<_> = (0..1_000)
            .map(|number| item(&format!("{portion}-{number}"), "1"))
            .collect();
        scope.add(&items).await;
    }
    for copy in ids(&room, &source) {
        try_fork(&room, &source, &copy, &fork(&source))
            .await
            .unwrap();

        let (one, other) = (export(&source, &room).await, export(&copy, &room).await);
        assert_eq!(one.unwrap().scope, other.unwrap().scope);
        let appended = room
            .scope_of(&copy)
            .add(&[item("0-0", "1"), item("new", "1")])
            .await;
        assert_eq!(appended, [(1, true), (6_001, false)]);
    }
}

over_every_store_and_confirmed! {
    a_fork_copies_the_whole_source,
    a_fork_and_its_source_change_independently,
    a_fork_copies_only_the_included_parts,
    a_fork_may_copy_a_history_up_to_a_position,
    a_fork_takes_the_requested_metadata_owner_and_ttl,
    a_fork_checks_conditions_and_extends_the_source_lifetime,
    a_turn_of_the_source_is_not_copied_and_blocks_no_fork,
    a_fork_needs_a_source_and_an_unused_id,
    a_repeated_fork_returns_the_first_answer_even_without_the_source,
    a_long_history_is_copied,
}

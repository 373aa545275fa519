use std::thread;

use threadkeep_domain::Refusal;
use threadkeep_domain::scope::{KV_MAX_BYTES, KV_MAX_KEYS, KvAnswer, ScopeWrite};

use super::room::{self, Room, numbered_key};
use super::scope_room::{Scope, fill, increment, item, set, set_if_absent};

const WRITERS: usize = 8;

fn run_concurrently<T: Send>(
    room: &Room,
    scope: &Scope,
    work: impl AsyncFn(usize, Scope) -> T + Sync,
) -> Vec<T> {
    thread::scope(|threads| {
        let workers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let work = &work;
                threads.spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()
                        .unwrap();
                    runtime.block_on(async {
                        let scope = Scope {
                            scopes: room.backend.for_worker(),
                            ..scope.clone()
                        };
                        work(writer, scope).await
                    })
                })
            })
            .collect();
        let workers = workers.into_iter();
        workers.map(|worker| worker.join().unwrap()).collect()
    })
}

async fn both(room: &Room) -> [Scope; 2] {
    let thread = room.subject();
    thread.merge(&[room::set("k", "1")]).await;
    [room.scope_of(&thread), room.session()]
}

async fn concurrent_writers_never_exceed_the_byte_limit(room: Room) {
    for scope in both(&room).await {
        scope
            .run(&["a", "b", "c"].map(|key| fill(key, 32_768)))
            .await;

        let accepted = run_concurrently(&room, &scope, async |writer, scope| {
            let mut accepted = 0;
            for number in 0..20 {
                let key = format!("{writer}-{number}");
                match scope.try_run(&[fill(&key, 1_000)]).await {
                    Ok(written) => {
                        assert!(written.kv_bytes <= KV_MAX_BYTES);
                        accepted += 1;
                    }
                    Err(Refusal::KvTooLarge { .. }) => {}
                    Err(refusal) => panic!("{refusal:?}"),
                }
            }
            accepted
        });

        let accepted: u64 = accepted.into_iter().sum();
        assert_eq!(accepted, 32);
        let view = scope.view().await.unwrap();
        assert_eq!(view.kv_bytes, 3 * 32_768 + 32_000);
        assert_eq!(view.stamp.version, 33);
    }
}

async fn concurrent_writers_never_exceed_the_key_limit(room: Room) {
    for scope in both(&room).await {
        let accepted = run_concurrently(&room, &scope, async |writer, scope| {
            let mut accepted = 0;
            for number in 0..40 {
                let key = format!("{writer}-{number}");
                accepted += usize::from(scope.try_run(&[set(&key, "")]).await.is_ok());
            }
            accepted
        });

        assert_eq!(accepted.into_iter().sum::<usize>(), 256);
        assert_eq!(scope.view().await.unwrap().key_count, KV_MAX_KEYS);
        assert_eq!(scope.keys().await.len(), 256);
    }
}

async fn concurrent_increments_are_all_counted(room: Room) {
    for scope in both(&room).await {
        run_concurrently(&room, &scope, async |_, scope| {
            for _ in 0..50 {
                scope.run(&[increment("n", 1)]).await;
            }
        });

        assert_eq!(scope.value("n").await.unwrap(), "400");
        assert_eq!(scope.version().await, 400);
    }
}

async fn one_of_several_concurrent_sets_if_absent_wins(room: Room) {
    for scope in both(&room).await {
        let answers = run_concurrently(&room, &scope, async |writer, scope| {
            scope.step(set_if_absent("lock", &writer.to_string())).await
        });

        let is_set = |answer: &KvAnswer| *answer == KvAnswer::Set(true);
        let winners: Vec<_> = (0..WRITERS)
            .filter(|writer| is_set(&answers[*writer]))
            .collect();
        assert_eq!(winners.len(), 1);
        assert_eq!(scope.value("lock").await.unwrap(), winners[0].to_string());
    }
}

async fn concurrent_creations_create_a_scope_once(room: Room) {
    let handle = room.handle();

    let made = run_concurrently(&room, &handle, async |_, scope| {
        let write = ScopeWrite {
            makes: true,
            ..scope.blank()
        };
        scope.write(&write).await.is_ok()
    });

    assert_eq!(made.into_iter().filter(|made| *made).count(), 1);
    assert_eq!(handle.version().await, 1);
}

async fn concurrent_appends_stay_under_the_limit_and_leave_no_gaps(room: Room) {
    for scope in both(&room).await {
        let scope = scope.keeping(100 * 100, false);

        let added = run_concurrently(&room, &scope, async |writer, scope| {
            let mut added = Vec::new();
            for number in 10..40 {
                // each item counts as 100 bytes
                let id = format!("{writer}-{number}");
                let item = item(&id, &"1".repeat(32));
                if let Ok(appended) = scope.try_add(&[item]).await {
                    added.push(appended[0].seq);
                }
            }
            added
        });

        let mut added: Vec<_> = added.into_iter().flatten().collect();
        added.sort_unstable();
        assert_eq!(added, (1..101).collect::<Vec<_>>());
        assert_eq!(scope.items().await.len(), 100);
        assert_eq!(scope.view().await.unwrap().history.bytes, 10_000);
    }
}

async fn a_concurrent_repeat_is_applied_once(room: Room) {
    for scope in both(&room).await {
        let replayed = run_concurrently(&room, &scope, async |_, scope| {
            let counts = [increment("n", 1)];
            let written = scope.run_once(numbered_key(1), &counts).await;
            written.unwrap().replayed
        });

        assert_eq!(replayed.into_iter().filter(|replayed| !replayed).count(), 1);
        assert_eq!(scope.value("n").await.unwrap(), "1");
    }
}

super::over_every_store! {
    concurrent_writers_never_exceed_the_byte_limit,
    concurrent_writers_never_exceed_the_key_limit,
    concurrent_increments_are_all_counted,
    one_of_several_concurrent_sets_if_absent_wins,
    concurrent_creations_create_a_scope_once,
    concurrent_appends_stay_under_the_limit_and_leave_no_gaps,
    a_concurrent_repeat_is_applied_once,
}

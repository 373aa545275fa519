use std::thread;

use threadkeep_domain::Refusal;
use threadkeep_domain::scope::{KV_MAX_BYTES, KV_MAX_KEYS, KvAnswer, ScopeWrite};

use super::room::{self, Room, numbered_once};
use super::scope_room::{Place, fill, increment, item, set, set_if_absent};

const WRITERS: usize = 8;

fn at_once<T: Send>(
    room: &Room,
    place: &Place,
    work: impl AsyncFn(usize, Place) -> T + Sync,
) -> Vec<T> {
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let work = &work;
                scope.spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()
                        .unwrap();
                    runtime.block_on(async {
                        let place = Place {
                            scopes: room.backend.for_worker(),
                            ..place.clone()
                        };
                        work(writer, place).await
                    })
                })
            })
            .collect();
        let workers = workers.into_iter();
        workers.map(|worker| worker.join().unwrap()).collect()
    })
}

async fn both(room: &Room) -> [Place; 2] {
    let thread = room.subject();
    thread.merge(&[room::set("k", "1")]).await;
    [room.scope_of(&thread), room.session()]
}

async fn writers_at_the_edge_of_the_total_never_pass_it(room: Room) {
    for place in both(&room).await {
        place
            .run(&["a", "b", "c"].map(|key| fill(key, 32_768)))
            .await;

        let accepted = at_once(&room, &place, async |writer, place| {
            let mut accepted = 0;
            for number in 0..20 {
                let key = format!("{writer}-{number}");
                match place.try_run(&[fill(&key, 1_000)]).await {
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
        let view = place.view().await.unwrap();
        assert_eq!(view.kv_bytes, 3 * 32_768 + 32_000);
        assert_eq!(view.stamp.version, 33);
    }
}

async fn writers_at_the_edge_of_the_keys_never_pass_it(room: Room) {
    for place in both(&room).await {
        let accepted = at_once(&room, &place, async |writer, place| {
            let mut accepted = 0;
            for number in 0..40 {
                let key = format!("{writer}-{number}");
                accepted += usize::from(place.try_run(&[set(&key, "")]).await.is_ok());
            }
            accepted
        });

        assert_eq!(accepted.into_iter().sum::<usize>(), 256);
        assert_eq!(place.view().await.unwrap().key_count, KV_MAX_KEYS);
        assert_eq!(place.keys().await.len(), 256);
    }
}

async fn increments_at_once_are_all_counted(room: Room) {
    for place in both(&room).await {
        at_once(&room, &place, async |_, place| {
            for _ in 0..50 {
                place.run(&[increment("n", 1)]).await;
            }
        });

        assert_eq!(place.value("n").await.unwrap(), "400");
        assert_eq!(place.version().await, 400);
    }
}

async fn of_sets_if_absent_at_once_one_wins(room: Room) {
    for place in both(&room).await {
        let answers = at_once(&room, &place, async |writer, place| {
            place.step(set_if_absent("lock", &writer.to_string())).await
        });

        let is_set = |answer: &KvAnswer| *answer == KvAnswer::Set(true);
        let winners: Vec<_> = (0..WRITERS).filter(|at| is_set(&answers[*at])).collect();
        assert_eq!(winners.len(), 1);
        assert_eq!(place.value("lock").await.unwrap(), winners[0].to_string());
    }
}

async fn a_scope_that_is_made_at_once_is_made_once(room: Room) {
    let handle = room.handle();

    let made = at_once(&room, &handle, async |_, place| {
        let write = ScopeWrite {
            makes: true,
            ..place.blank()
        };
        place.write(&write).await.is_ok()
    });

    assert_eq!(made.into_iter().filter(|made| *made).count(), 1);
    assert_eq!(handle.version().await, 1);
}

async fn histories_stay_under_their_limit_and_without_gaps(room: Room) {
    for place in both(&room).await {
        let place = place.keeping(100 * 100, false);

        let added = at_once(&room, &place, async |writer, place| {
            let mut added = Vec::new();
            for number in 10..40 {
                // the item counts as 100 bytes
                let id = format!("{writer}-{number}");
                let item = item(&id, &"1".repeat(32));
                if let Ok(appended) = place.try_add(&[item]).await {
                    added.push(appended[0].seq);
                }
            }
            added
        });

        let mut added: Vec<_> = added.into_iter().flatten().collect();
        added.sort_unstable();
        assert_eq!(added, (1..101).collect::<Vec<_>>());
        assert_eq!(place.items().await.len(), 100);
        assert_eq!(place.view().await.unwrap().history.bytes, 10_000);
    }
}

async fn a_repeat_from_many_at_once_is_done_once(room: Room) {
    for place in both(&room).await {
        let replayed = at_once(&room, &place, async |_, place| {
            let counts = [increment("n", 1)];
            let written = place.run_once(numbered_once(1), &counts).await;
            written.unwrap().replayed
        });

        assert_eq!(replayed.into_iter().filter(|it| !it).count(), 1);
        assert_eq!(place.value("n").await.unwrap(), "1");
    }
}

super::over_every_store! {
    writers_at_the_edge_of_the_total_never_pass_it,
    writers_at_the_edge_of_the_keys_never_pass_it,
    increments_at_once_are_all_counted,
    of_sets_if_absent_at_once_one_wins,
    a_scope_that_is_made_at_once_is_made_once,
    histories_stay_under_their_limit_and_without_gaps,
    a_repeat_from_many_at_once_is_done_once,
}

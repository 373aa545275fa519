use std::thread;

use threadkeep_domain::{Precondition, Written};

use super::room::{Room, Subject, increment, numbered_once, push, push_window};

const WRITERS: usize = 8;

fn at_once<T: Send>(
    room: &Room,
    subject: &Subject,
    work: impl AsyncFn(usize, Subject) -> T + Sync,
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
                        let store = room.backend.for_worker();
                        let subject = Subject {
                            store,
                            ..subject.clone()
                        };
                        work(writer, subject).await
                    })
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .collect()
    })
}

fn sorted_versions(written: &[Written]) -> Vec<u64> {
    let mut versions: Vec<_> = written
        .iter()
        .map(|written| written.stamp.version)
        .collect();
    versions.sort_unstable();
    versions
}

async fn pushes_at_once_are_all_there_in_the_order_of_versions(room: Room) {
    let thread = room.subject();

    let written = at_once(&room, &thread, async |writer, thread| {
        let mut written = Vec::new();
        for place in 0..50 {
            let element = format!("{}", writer * 50 + place);
            written.push((thread.merge(&[push("k", &element)]).await, element));
        }
        written
    });

    let mut written: Vec<_> = written.into_iter().flatten().collect();
    written.sort_unstable_by_key(|(written, _)| written.stamp.version);
    let elements: Vec<_> = written.iter().map(|(_, element)| &**element).collect();
    let all = (WRITERS * 50) as u64;
    assert_eq!(
        thread.value("k").await.unwrap(),
        format!("[{}]", elements.join(","))
    );
    let written: Vec<_> = written.into_iter().map(|(written, _)| written).collect();
    assert_eq!(sorted_versions(&written), (1..=all).collect::<Vec<_>>());
    assert_eq!(thread.stamp().await.version, all);
}

async fn windows_hold_under_pushes_at_once(room: Room) {
    let thread = room.subject();

    at_once(&room, &thread, async |writer, thread| {
        for _ in 0..50 {
            let element = format!("\"{}\"", writer.to_string().repeat(100));
            thread.merge(&[push_window("k", &element, 30)]).await;
        }
    });

    let object = thread.thread().await.unwrap();
    assert_eq!(object.stamp.version, (WRITERS * 50) as u64);
    assert_eq!(object.size_bytes, 6 + 1 + 30 * 103);
    assert_eq!(
        thread.state().await.unwrap().len() as u64,
        object.size_bytes
    );
}

async fn increments_at_once_lose_nothing(room: Room) {
    let thread = room.subject();

    at_once(&room, &thread, async |_, thread| {
        for _ in 0..50 {
            thread.merge(&[increment("k", 3)]).await;
        }
    });

    let sum = WRITERS * 50 * 3;
    assert_eq!(thread.value("k").await.unwrap(), sum.to_string());
}

async fn of_writes_on_one_version_one_is_done(room: Room) {
    let thread = room.subject();

    for version in 0..20 {
        let written = at_once(&room, &thread, async |_, thread| {
            thread
                .merge_if(Precondition::Version(version), &[])
                .await
                .is_ok()
        });

        assert_eq!(written.iter().filter(|done| **done).count(), 1);
    }
    assert_eq!(thread.stamp().await.version, 20);
}

async fn of_writes_with_one_idempotency_key_one_is_done(room: Room) {
    let thread = room.subject();

    for round in 0..20 {
        let written = at_once(&room, &thread, async |_, thread| {
            let key = numbered_once(round);
            thread.merge_once(key, &[push("k", "1")]).await.unwrap()
        });

        assert_eq!(written.iter().filter(|one| !one.replayed).count(), 1);
        assert!(written.iter().all(|one| one.stamp == written[0].stamp));
    }
    assert_eq!(thread.stamp().await.version, 20);
}

async fn of_ends_at_once_one_finds_the_thread(room: Room) {
    for _ in 0..20 {
        let thread = room.subject();
        thread.merge(&[]).await;

        let ended = at_once(&room, &thread, async |_, thread| {
            thread.destroy().await.existed
        });

        assert_eq!(ended.iter().filter(|existed| **existed).count(), 1);
    }
}

over_every_store_and_confirmed! {
    pushes_at_once_are_all_there_in_the_order_of_versions,
    windows_hold_under_pushes_at_once,
    increments_at_once_lose_nothing,
    of_writes_on_one_version_one_is_done,
    of_writes_with_one_idempotency_key_one_is_done,
    of_ends_at_once_one_finds_the_thread,
}

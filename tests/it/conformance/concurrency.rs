use std::thread;

use threadkeep_domain::{Precondition, Written};

use super::room::{Room, Subject, increment, numbered_key, push, push_window};

const WRITERS: usize = 8;

fn run_concurrently<T: Send>(
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

async fn concurrent_pushes_are_all_kept_in_version_order(room: Room) {
    let thread = room.subject();

    let written = run_concurrently(&room, &thread, async |writer, thread| {
        let mut written = Vec::new();
        for number in 0..50 {
            let element = format!("{}", writer * 50 + number);
            written.push((thread.merge(&[push("k", &element)]).await, element));
        }
        written
    });

    let mut written: Vec<_> = written.into_iter().flatten().collect();
    written.sort_unstable_by_key(|(written, _)| written.stamp.version);
    let elements: Vec<_> = written.iter().map(|(_, element)| &**element).collect();
    let total = (WRITERS * 50) as u64;
    assert_eq!(
        thread.value("k").await.unwrap(),
        format!("[{}]", elements.join(","))
    );
    let written: Vec<_> = written.into_iter().map(|(written, _)| written).collect();
    assert_eq!(sorted_versions(&written), (1..=total).collect::<Vec<_>>());
    assert_eq!(thread.stamp().await.version, total);
}

async fn concurrent_pushes_respect_the_window(room: Room) {
    let thread = room.subject();

    run_concurrently(&room, &thread, async |writer, thread| {
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

async fn concurrent_increments_lose_nothing(room: Room) {
    let thread = room.subject();

    run_concurrently(&room, &thread, async |_, thread| {
        for _ in 0..50 {
            thread.merge(&[increment("k", 3)]).await;
        }
    });

    let sum = WRITERS * 50 * 3;
    assert_eq!(thread.value("k").await.unwrap(), sum.to_string());
}

async fn one_of_several_writes_on_one_version_succeeds(room: Room) {
    let thread = room.subject();

    for version in 0..20 {
        let written = run_concurrently(&room, &thread, async |_, thread| {
            thread
                .merge_if(Precondition::Version(version), &[])
                .await
                .is_ok()
        });

        assert_eq!(written.iter().filter(|done| **done).count(), 1);
    }
    assert_eq!(thread.stamp().await.version, 20);
}

async fn writes_with_one_idempotency_key_run_once(room: Room) {
    let thread = room.subject();

    for round in 0..20 {
        let written = run_concurrently(&room, &thread, async |_, thread| {
            let key = numbered_key(round);
            thread.merge_once(key, &[push("k", "1")]).await.unwrap()
        });

        assert_eq!(written.iter().filter(|one| !one.replayed).count(), 1);
        assert!(written.iter().all(|one| one.stamp == written[0].stamp));
    }
    assert_eq!(thread.stamp().await.version, 20);
}

async fn one_of_several_concurrent_destroys_finds_the_thread(room: Room) {
    for _ in 0..20 {
        let thread = room.subject();
        thread.merge(&[]).await;

        let ended = run_concurrently(&room, &thread, async |_, thread| {
            thread.destroy().await.existed
        });

        assert_eq!(ended.iter().filter(|existed| **existed).count(), 1);
    }
}

over_every_store_and_confirmed! {
    concurrent_pushes_are_all_kept_in_version_order,
    concurrent_pushes_respect_the_window,
    concurrent_increments_lose_nothing,
    one_of_several_writes_on_one_version_succeeds,
    writes_with_one_idempotency_key_run_once,
    one_of_several_concurrent_destroys_finds_the_thread,
}

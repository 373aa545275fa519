//! Tests a bucket (a partition of the threads, chosen by a hash of the id) with more threads than fit into one group
//! of the Redis index.

use threadkeep_domain::ThreadId;
use threadkeep_store::Reaped;

use super::owners::all_threads;
use super::room::{Room, Subject, set};

const THREADS: usize = 400;

/// Creates threads of one bucket in random order. Half of their ids are longer than random ids.
async fn create_in_one_bucket(room: &Room) -> Vec<Subject> {
    let bucket = room.backend.bucket_of(&ThreadId::random());
    let mut threads: Vec<Subject> = Vec::with_capacity(THREADS);
    while threads.len() < THREADS {
        let random = ThreadId::random();
        let id = match threads.len() % 2 {
            0 => random,
            _ => format!("{random}Z").parse().unwrap(),
        };
        if room.backend.bucket_of(&id) == bucket {
            let thread = Subject {
                id,
                ..room.subject()
            };
            thread.merge(&[set("k", "1")]).await;
            threads.push(thread);
        }
    }
    threads
}

fn sorted(threads: &[Subject]) -> Vec<ThreadId> {
    let mut ids: Vec<_> = threads.iter().map(|thread| thread.id).collect();
    ids.sort_unstable();
    ids
}

async fn a_list_has_each_thread_once_in_order(room: Room) {
    let threads = create_in_one_bucket(&room).await;

    assert_eq!(room.backend.count_threads().await.unwrap(), THREADS as u64);
    for limit in [64, 1_000] {
        assert_eq!(all_threads(&room, limit).await, sorted(&threads), "{limit}");
    }
}

async fn a_list_omits_ended_threads_and_includes_new_ones(room: Room) {
    let mut threads = create_in_one_bucket(&room).await;
    for thread in threads.split_off(THREADS / 8) {
        thread.destroy().await;
    }
    threads.extend(create_in_one_bucket(&room).await);

    assert_eq!(all_threads(&room, 50).await, sorted(&threads));
}

async fn each_thread_ends_when_it_is_due_and_not_before(room: Room) {
    let threads = create_in_one_bucket(&room).await;
    let (used, unused) = threads.split_at(THREADS / 2);
    let ttl = threads[0].policy.ttl;
    room.advance(ttl / 2);
    for thread in used {
        assert!(thread.exists().await);
        thread.merge(&[set("k", "2")]).await;
    }
    room.advance(ttl / 2);
    room.reap().await;

    assert_eq!(all_threads(&room, 1_000).await, sorted(used));
    for thread in unused {
        assert_eq!(room.story(thread).await[1..], ["#2 v1 expired"]);
    }
    assert_eq!(room.reap().await, Reaped::default());
    room.advance(ttl / 2);
    room.reap().await;
    assert_eq!(all_threads(&room, 1_000).await, []);
}

super::over_every_store! {
    a_list_has_each_thread_once_in_order,
    a_list_omits_ended_threads_and_includes_new_ones,
    each_thread_ends_when_it_is_due_and_not_before,
}

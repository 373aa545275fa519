use std::time::Duration;

use threadkeep_domain::{EventKind, ThreadPolicy};

use super::{over_every_store, replica};
use crate::conformance::room::{Room, Subject, set};
use crate::support::until;

fn short_lived(room: &Room) -> Subject {
    room.subject_under(ThreadPolicy {
        ttl: Duration::from_secs(60),
        ..ThreadPolicy::THREAD
    })
}

async fn ended(room: &Room, threads: &[Subject]) -> usize {
    let mut ended = 0;
    for thread in threads {
        let events = room.events(thread).await;
        let ends = events.iter().filter(|event| {
            let state_lost = false;
            matches!(&event.kind, EventKind::Destroyed { state_lost: lost, .. } if *lost == state_lost)
        });
        let ends = ends.count();
        assert!(ends <= 1, "{events:?}");
        ended += ends;
    }
    ended
}

async fn idle_threads_are_ended_with_their_state(room: Room) {
    let events = replica(&room);
    let threads: Vec<_> = (0..200).map(|_| short_lived(&room)).collect();
    for thread in &threads {
        thread.merge(&[set("k", "[1,2]")]).await;
    }

    room.advance(Duration::from_secs(61));

    until(|| async { ended(&room, &threads).await == threads.len() }).await;
    let archive = room.archive(&threads[7]).await.unwrap();
    assert_eq!(archive.state, r#"{"k":[1,2]}"#);
    events.shutdown().await;
}

async fn replicas_share_the_work_and_end_each_thread_once(room: Room) {
    let replicas = [replica(&room), replica(&room), replica(&room)];
    let threads: Vec<_> = (0..200).map(|_| short_lived(&room)).collect();
    for thread in &threads {
        thread.merge(&[set("k", "1")]).await;
    }

    room.advance(Duration::from_secs(61));

    until(|| async { ended(&room, &threads).await == threads.len() }).await;
    for replica in replicas {
        replica.shutdown().await;
    }
}

async fn a_stopped_replica_releases_its_share_immediately(room: Room) {
    let one = replica(&room);
    let other = replica(&room);
    one.shutdown().await;
    let threads: Vec<_> = (0..50).map(|_| short_lived(&room)).collect();
    for thread in &threads {
        thread.merge(&[set("k", "1")]).await;
    }

    room.advance(Duration::from_secs(61));

    until(|| async { ended(&room, &threads).await == threads.len() }).await;
    other.shutdown().await;
}

over_every_store!(
    idle_threads_are_ended_with_their_state,
    replicas_share_the_work_and_end_each_thread_once,
    a_stopped_replica_releases_its_share_immediately,
);

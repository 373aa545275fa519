use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use threadkeep_domain::scope::Removal;
use threadkeep_domain::{
    Access, CheckpointImage, CheckpointImages, CheckpointName, Conditions, Fork, IfExists, Image,
    Import, Included, Owner, OwnerChange, Refusal, Thread, Write,
};
use threadkeep_store::WriteError;

use super::forks::{fork, ids};
use super::images::{content, export, filled, import};
use super::room::{Room, Subject, in_parallel, set};
use super::scope_room::item;

/// Size of a value that is too large for an export to read in one step.
const LARGE_BYTES: usize = 300_000;

fn large(letter: &str) -> String {
    format!("\"{}\"", letter.repeat(LARGE_BYTES))
}

async fn save(room: &Room, thread: &Subject, name: Option<&str>) -> u32 {
    let name: Option<CheckpointName> = name.map(|name| name.parse().unwrap());
    let conditions = Conditions::default();
    let saved = room
        .backend
        .save_checkpoint(&thread.id, name.as_ref(), &conditions);
    saved.await.unwrap().head.number
}

async fn delete(room: &Room, thread: &Subject, number: u32) {
    let conditions = Conditions::default();
    let deleted = room
        .backend
        .delete_checkpoint(&thread.id, number, &conditions);
    deleted.await.unwrap();
}

async fn numbers(room: &Room, thread: &Subject) -> Vec<u32> {
    let found = room.backend.list_checkpoints(&thread.id, Access::All).await;
    let heads = found.unwrap().map_or_else(Vec::new, |found| found.content);
    heads.iter().map(|head| head.number).collect()
}

fn describe(checkpoints: &CheckpointImages) -> (u32, Vec<String>) {
    let line = |saved: &CheckpointImage| {
        let mut state = Vec::new();
        saved.state.write_json(&mut state);
        format!(
            "{} {:?} v{} {} {} {}",
            saved.number,
            saved.name,
            saved.version,
            saved.created_ms,
            saved.metadata.as_str(),
            String::from_utf8(state).unwrap()
        )
    };
    (
        checkpoints.last,
        checkpoints.saved.iter().map(line).collect(),
    )
}

async fn with_checkpoints_and_gaps(room: &Room) -> Subject {
    let thread = filled(room).await;
    save(room, &thread, Some("before")).await;
    thread.merge(&[set("text", &large("x"))]).await;
    save(room, &thread, None).await;
    thread.set_metadata("{}").await.unwrap();
    save(room, &thread, None).await;
    delete(room, &thread, 3).await;
    thread.merge(&[set("text", "1")]).await;
    let scope = room.scope_of(&thread);
    let items: Vec<_> = (3..7).map(|n| item(&n.to_string(), "1.0")).collect();
    scope.add(&items).await;
    let id = "4".parse().unwrap();
    scope.remove(Removal::Item(&id)).await;
    scope.remove(Removal::Newest(1)).await;
    thread
}

async fn an_import_keeps_checkpoints_and_history_gaps(room: Room) {
    let thread = with_checkpoints_and_gaps(&room).await;
    let image = export(&thread, &room).await.unwrap();
    let copy = room.subject();

    let imported = room.backend.import(&copy.id, &import(&image, &copy)).await;
    imported.unwrap();

    let again = export(&copy, &room).await.unwrap();
    assert_eq!(content(&again), content(&image));
    assert_eq!(describe(&again.checkpoints), describe(&image.checkpoints));
    assert_eq!(again.checkpoints.last, 3);
    let scope = again.scope.unwrap();
    let seqs: Vec<_> = scope.items.iter().map(|item| item.seq).collect();
    assert_eq!(seqs, [1, 2, 3, 5]);
    let history = scope.history();
    assert_eq!(
        (history.next_seq, history.removed, history.len()),
        (7, 2, 4)
    );
    for thread in [&thread, &copy] {
        let scope = room.scope_of(thread);
        let added = scope.add(&[item("5", "1.0"), item("4", "2")]).await;
        assert_eq!(added, [(5, true), (7, false)]);
        let write = thread.blank();
        let restored = room.backend.restore_checkpoint(&thread.id, 2, &write).await;
        restored.unwrap();
        assert_eq!(thread.value("text").await.unwrap(), large("x"));
        assert_eq!(save(&room, thread, None).await, 4);
        let object = thread.thread().await.unwrap();
        assert_eq!(object.metadata.as_str(), r#"{"title":"a","n":1.0}"#);
    }
    assert_eq!(copy.state().await, thread.state().await);
}

async fn a_replaced_thread_loses_its_checkpoints(room: Room) {
    let image = export(&filled(&room).await, &room).await.unwrap();
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    save(&room, &thread, None).await;
    save(&room, &thread, None).await;
    let replacing = Import {
        if_exists: IfExists::Replace,
        ..import(&image, &thread)
    };

    room.backend.import(&thread.id, &replacing).await.unwrap();

    assert!(numbers(&room, &thread).await.is_empty());
    let archive = room.backend.get_archive(&thread.id, None).await.unwrap();
    assert_eq!(archive.unwrap().head.checkpoints, [1, 2]);
    assert_eq!(save(&room, &thread, None).await, 1);
}

async fn a_fork_can_start_from_a_checkpoint(room: Room) {
    let source = with_checkpoints_and_gaps(&room).await;
    let image = export(&source, &room).await.unwrap();
    for copy in ids(&room, &source) {
        let from = Fork {
            checkpoint: Some(1),
            ..fork(&source)
        };
        let forked = room.backend.fork(&source.id, &copy.id, &from).await;
        assert_eq!(forked.unwrap().stamp.version, 1);

        let forked_image = export(&copy, &room).await.unwrap();
        let (_, saved) = describe(&image.checkpoints);
        let (thread, state, scope) = content(&forked_image);
        assert!(saved[0].ends_with(&state), "{state}");
        assert_eq!(scope, image.scope);
        let metadata = format!(
            r#"{{"title":"a","n":1.0,"forked_from":{{"thread_id":"{}","version":4}}}}"#,
            source.id
        );
        assert_eq!(thread.metadata.as_str(), metadata);
        assert_eq!(describe(&forked_image.checkpoints), (0, Vec::new()));
        copy.merge(&[set("text", "2")]).await;
        assert_eq!(
            describe(&export(&source, &room).await.unwrap().checkpoints),
            describe(&image.checkpoints)
        );
    }
    for copy in ids(&room, &source) {
        for number in [3, 4] {
            let from = Fork {
                checkpoint: Some(number),
                ..fork(&source)
            };
            let refused = room.backend.fork(&source.id, &copy.id, &from).await;
            assert_eq!(refusal(refused), Refusal::CheckpointNotFound);
        }
        let without_state = Fork {
            checkpoint: Some(2),
            included: Included {
                state: false,
                ..Included::ALL
            },
            ..fork(&source)
        };
        let forked = room.backend.fork(&source.id, &copy.id, &without_state);
        assert_eq!(forked.await.unwrap().size_bytes, 2);
        copy.merge(&[set("k", "[1]")]).await;
        assert_eq!(copy.state().await.unwrap(), r#"{"k":[1]}"#);
    }
}

async fn a_fork_without_history_reuses_no_position(room: Room) {
    let source = with_checkpoints_and_gaps(&room).await;
    for copy in ids(&room, &source) {
        let fork = Fork {
            included: Included {
                history: false,
                ..Included::ALL
            },
            ..fork(&source)
        };
        room.backend
            .fork(&source.id, &copy.id, &fork)
            .await
            .unwrap();

        let added = room.scope_of(&copy).add(&[item("1", "2")]).await;
        assert_eq!(added, [(7, false)]);
        let image = export(&copy, &room).await.unwrap();
        let history = image.scope.unwrap().history();
        assert_eq!((history.first_seq, history.removed), (7, 0));
    }
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, WriteError>) -> Refusal {
    match answer {
        Err(WriteError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

async fn a_new_thread_of_an_owner_requires_a_reservation(room: Room) {
    let source = filled(&room).await;
    let image = export(&source, &room).await.unwrap();
    for copy in ids(&room, &source) {
        let unreserved = Fork {
            has_reservation: false,
            ..fork(&source)
        };
        let refused = room.backend.fork(&source.id, &copy.id, &unreserved).await;
        assert_eq!(refusal(refused), Refusal::NoReservation);
        assert!(!copy.exists().await);
    }
    let thread = room.subject();
    let unreserved = Import {
        has_reservation: false,
        if_exists: IfExists::Replace,
        ..import(&image, &thread)
    };
    let refused = room.backend.import(&thread.id, &unreserved).await;
    assert_eq!(refusal(refused), Refusal::NoReservation);
    let bob = Owner::new("bob").unwrap();
    let of_bob = Write {
        owner: OwnerChange::Set(&bob),
        ..thread.blank()
    };
    thread.write(&of_bob).await.unwrap();
    let refused = room.backend.import(&thread.id, &unreserved).await;
    assert_eq!(refusal(refused), Refusal::NoReservation);

    let reserved = Import {
        has_reservation: true,
        ..unreserved
    };
    room.backend.import(&thread.id, &reserved).await.unwrap();
    // replacing a thread of the same owner requires no reservation
    room.backend.import(&thread.id, &unreserved).await.unwrap();

    let unowned = Image {
        thread: Thread {
            owner: None,
            ..image.thread.clone()
        },
        ..image
    };
    let other = room.subject();
    let without_owner = Import {
        has_reservation: false,
        ..import(&unowned, &other)
    };
    room.backend
        .import(&other.id, &without_owner)
        .await
        .unwrap();
}

/// Each export must be consistent even while a writer keeps saving a checkpoint and deleting the previous one.
async fn an_export_is_consistent_while_checkpoints_change(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("text", &large("x"))]).await;
    save(&room, &thread, None).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (thread, stop) = (thread.clone(), Arc::clone(&stop));
        let backend = Arc::clone(&room.backend);
        in_parallel(async move {
            let conditions = Conditions::default();
            while !stop.load(Ordering::Relaxed) {
                let saved = backend.save_checkpoint(&thread.id, None, &conditions).await;
                let before = saved.unwrap().head.number - 1;
                let deleted = backend.delete_checkpoint(&thread.id, before, &conditions);
                deleted.await.unwrap();
            }
        })
    };

    for _ in 0..30 {
        let image = export(&thread, &room).await.unwrap();
        let CheckpointImages { last, saved } = image.checkpoints;
        assert!((1..=2).contains(&saved.len()), "{}", saved.len());
        assert_eq!(saved.last().unwrap().number, last);
        for saved in saved {
            assert_eq!(saved.state.size_bytes(), image.thread.size_bytes);
        }
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
}

over_every_store_and_confirmed! {
    an_import_keeps_checkpoints_and_history_gaps,
    a_replaced_thread_loses_its_checkpoints,
    a_fork_can_start_from_a_checkpoint,
    a_fork_without_history_reuses_no_position,
    a_new_thread_of_an_owner_requires_a_reservation;
    hurried: an_export_is_consistent_while_checkpoints_change,
}

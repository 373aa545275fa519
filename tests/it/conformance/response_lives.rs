use std::sync::Arc;
use std::time::Duration;

use threadkeep_domain::{
    Access, Conditions, Refusal, ResponseId, Retention, ThreadPolicy, TurnToken,
};
use threadkeep_store::{Begun, Floor, Rotate};

use super::response_room::{
    DUE, KEPT, LEASE, LONG, SECOND, Turn, bytes, living, one, owned, request, take,
};
use super::room::{Room, Subject, refused, set};

async fn signs_of_life_keep_driver_turn_and_thread(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;

    turn.tell(token, 0, &["a"]).await.unwrap();
    let steps = ThreadPolicy::THREAD.ttl.as_secs() / 10 + 1;
    for _ in 0..steps {
        room.advance(10 * SECOND);
        turn.keep(token).await.unwrap();
    }

    turn.tell(token, 1, &["b"]).await.unwrap();
    let (events, _) = turn.told(0).await.unwrap();
    assert_eq!(events, ["a", "b"]);
    let other = turn.begin(TurnToken::random()).await;
    assert!(matches!(other, Begun::Running { .. }), "{other:?}");
    let client = take(&room, &thread, false).await;
    assert!(
        matches!(client, Err(Refusal::TurnTaken { .. })),
        "{client:?}"
    );
    assert!(thread.exists().await);
}

async fn a_refused_sign_of_life_is_no_use_of_the_thread(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let old = turn.begun().await;
    turn.taken_over().await;
    room.advance(ThreadPolicy::THREAD.ttl - 60 * SECOND);

    assert_eq!(turn.keep(old).await, Err(Refusal::TurnLost));

    room.advance(60 * SECOND);
    assert!(!thread.exists().await);
}

async fn a_rotated_thread_ends_its_response_under_the_new_id(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;
    turn.note(token, 1, "entry").await.unwrap();
    let conditions = Conditions {
        access: Access::All,
        precondition: None,
        turn: Some(token),
        idempotency: None,
    };
    let rotate = Rotate {
        conditions,
        tombstone: ThreadPolicy::THREAD.tombstone,
    };

    let rotated = refused(room.store.rotate(&thread.id, &rotate).await).unwrap();
    let late = turn.note(token, 2, "late").await;
    let to = Subject {
        id: rotated.id,
        ..Subject::of(Arc::clone(&room.store))
    };
    let place = room.scope_of(&to);
    let moved = Turn {
        place: &place,
        ..turn
    };
    let next = Turn::new(&room, &place);
    let locked = next.begin(TurnToken::random()).await;
    moved.end(None, 1, "closed").await.unwrap();
    next.begun().await;

    assert_eq!(late, Err(Refusal::Destroyed));
    assert!(matches!(locked, Begun::Locked { .. }), "{locked:?}");
    assert_eq!(moved.history().await, 1);
}

async fn open_responses_are_found_when_they_are_due(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let beside = || Turn::new(&room, &place).with(Floor::None);
    let (open, ended, lost) = (beside(), beside(), beside());
    let bucket = u16::from(open.id.bucket());
    let due = async || {
        let due = room.backend.due_responses(&[bucket], 100).await.unwrap();
        let is_ours = |id: &&ResponseId| [open.id, ended.id, lost.id].contains(id);
        due.iter().filter(is_ours).copied().collect::<Vec<_>>()
    };
    let token = ended.begun().await;
    ended.end(Some(token), 0, "answer").await.unwrap();
    lost.begun().await;
    room.advance(KEPT - DUE);
    let token = open.begun().await;
    room.advance(DUE - SECOND);
    open.note(token, 1, "entry").await.unwrap();
    room.advance(DUE - SECOND);

    let before = due().await;
    room.advance(SECOND);
    let after = due().await;
    open.keep(token).await.unwrap();
    let kept = due().await;

    // the abandoned response `lost` is deleted
    assert_eq!((before, after, kept), (vec![], vec![open.id], vec![]));
    assert_eq!(lost.view().await, None);
}

async fn a_response_belongs_to_one_life_of_its_thread(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;

    thread.destroy().await;
    for _ in 0..2 {
        let late = turn.note_with(token, 1, "late", &one()).await;
        assert_eq!(late, Err(Refusal::Destroyed));
        assert_eq!(turn.note(token, 1, "late").await, Err(Refusal::Destroyed));
        assert_eq!(turn.keep(token).await, Err(Refusal::Destroyed));
        let ended = turn.end(Some(token), 0, "answer").await;
        assert_eq!(ended, Err(Refusal::Destroyed));
        room.advance(ThreadPolicy::THREAD.tombstone);
        thread.merge(&[set("k", "2")]).await;
    }
    room.advance(LEASE);
    let resumed = turn.begin_as(TurnToken::random(), &request()).await;
    assert_eq!(resumed, Err(Refusal::Destroyed));

    let ended = turn.end_with(Some(token), 0, "destroyed", None).await;
    assert!(!ended.unwrap().replayed);
    assert_eq!(turn.answer().await, Some(bytes("destroyed")));
    assert_eq!(turn.history().await, 0);
}

async fn a_response_needs_its_thread(room: Room) {
    let thread = room.subject();
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);

    let begun = turn.begin_as(TurnToken::random(), &request()).await;

    assert_eq!(begun, Err(Refusal::NoThread));
    assert_eq!(turn.view().await, None);
}

async fn a_response_is_kept_for_a_time(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let (lost, ended) = (Turn::new(&room, &place), Turn::new(&room, &place));
    let token = lost.begun().await;
    room.advance(KEPT - SECOND);
    lost.note(token, 1, "entry").await.unwrap();
    room.advance(KEPT - SECOND);
    assert!(lost.view().await.unwrap().driven.is_none());

    room.advance(SECOND);
    assert_eq!(lost.view().await, None);
    assert_eq!(lost.note(token, 2, "late").await, Err(Refusal::TurnLost));
    let token = ended.begun().await;
    ended.end(Some(token), 0, "answer").await.unwrap();
    room.advance(LONG - SECOND);
    // the thread has expired meanwhile
    assert!(!thread.exists().await);
    assert_eq!(ended.answer().await, Some(bytes("answer")));
    room.advance(SECOND);
    assert_eq!(ended.view().await, None);
}

async fn a_response_is_deleted_once_it_has_ended(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let delete = async || room.backend.delete_response(&turn.id).await.unwrap();
    assert!(!delete().await);
    let token = turn.begun().await;

    let while_it_runs = delete().await;
    turn.end(Some(token), 0, "answer").await.unwrap();

    assert!(!while_it_runs);
    assert!(delete().await);
    assert!(!delete().await);
    assert_eq!(turn.view().await, None);
    assert_eq!(turn.told(0).await, None);
    assert_eq!(turn.history().await, 1);
}

async fn responses_are_erased_with_their_owner(room: Room) {
    let (owner, thread) = owned(&room).await;
    let place = room.scope_of(&thread);
    let many: Vec<_> = (0..150)
        .map(|_| Turn::new(&room, &place).with(Floor::None))
        .collect();
    for turn in &many {
        let token = turn.begun().await;
        turn.tell(token, 0, &["event"]).await.unwrap();
        turn.end_with(Some(token), 0, "answer", None).await.unwrap();
    }
    let open = Turn::new(&room, &place);
    let token = open.begun().await;

    let erase = async || room.backend.erase_owned(owner.tag(), SECOND).await.unwrap();
    let mut threads = 0;
    while let Some(erased) = erase().await {
        threads += erased.threads;
    }

    assert_eq!(threads, 1);
    for turn in many.iter().chain([&open]) {
        assert_eq!(turn.view().await, None);
        assert_eq!(turn.told(0).await, None);
    }
    assert!(open.note(token, 1, "late").await.is_err());
}

async fn responses_are_erased_even_without_the_archive_of_their_thread(room: Room) {
    let retention = Retention {
        archive: Duration::ZERO,
        ..Retention::DEFAULT
    };
    let room = room.keeping(retention).await;
    let (owner, thread) = owned(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;
    turn.end(Some(token), 0, "answer").await.unwrap();
    thread.destroy().await;
    room.advance(24 * 3600 * SECOND);
    assert_eq!(turn.answer().await, Some(bytes("answer")));

    let erase = async || room.backend.erase_owned(owner.tag(), SECOND).await.unwrap();
    while erase().await.is_some() {}

    assert_eq!(turn.view().await, None);
}

super::over_every_store_and_confirmed!(
    signs_of_life_keep_driver_turn_and_thread,
    a_refused_sign_of_life_is_no_use_of_the_thread,
    a_rotated_thread_ends_its_response_under_the_new_id,
    open_responses_are_found_when_they_are_due,
    a_response_belongs_to_one_life_of_its_thread,
    a_response_needs_its_thread,
    a_response_is_kept_for_a_time,
    a_response_is_deleted_once_it_has_ended,
    responses_are_erased_with_their_owner,
    responses_are_erased_even_without_the_archive_of_their_thread,
);

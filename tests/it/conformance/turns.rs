//! Turns: leases of a thread with a fencing token.

use std::time::Duration;

use threadkeep_domain::scope::{ScopePolicies, ScopeWrite};
use threadkeep_domain::{
    Access, Conditions, IdempotencyKey, MetadataChange, Refusal, Release, TakeTurn, ThreadPolicy,
    Tombstone, TurnGranted, TurnHeld, TurnState, TurnToken, Write, Written,
};
use threadkeep_store::{Destroy, ScopeEnd};

use super::room::{Room, Subject, delete, increment, json, numbered_key, push, refused, set};
use super::scope_room;

const TTL: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

fn shared_turn() -> TakeTurn {
    TakeTurn {
        token: TurnToken::random(),
        ttl: TTL,
        exclusive: false,
        waits: false,
        idempotency: None,
    }
}

pub(super) fn exclusive_turn() -> TakeTurn {
    TakeTurn {
        exclusive: true,
        ..shared_turn()
    }
}

pub(super) async fn living(room: &Room) -> Subject {
    let thread = room.subject();
    thread.merge(&[set("k", "1"), set("list", "[]")]).await;
    thread
}

pub(super) async fn take(
    room: &Room,
    thread: &Subject,
    take: TakeTurn,
) -> Result<TurnGranted, Refusal> {
    refused(room.backend.take_turn(&thread.id, Access::All, &take).await)
}

async fn renew(room: &Room, thread: &Subject, token: TurnToken) -> Result<TurnGranted, Refusal> {
    refused(
        room.backend
            .renew_turn(&thread.id, Access::All, token, TTL)
            .await,
    )
}

async fn end(room: &Room, thread: &Subject, token: TurnToken) -> Result<(), Refusal> {
    refused(
        room.backend
            .end_turn(&thread.id, Access::All, token, Release::Complete)
            .await,
    )
}

async fn state(room: &Room, thread: &Subject) -> TurnState {
    let turn = room.backend.get_turn(&thread.id, Access::All).await;
    turn.unwrap()
}

async fn is_held(room: &Room, thread: &Subject) -> bool {
    state(room, thread).await.held.is_some()
}

async fn write_by(thread: &Subject, turn: Option<TurnToken>) -> Result<Written, Refusal> {
    let operations = [push("list", "1")];
    let write = Write {
        operations: &operations,
        conditions: Conditions {
            turn,
            ..Conditions::default()
        },
        ..thread.blank()
    };
    thread.write(&write).await
}

async fn refusals(room: &Room, thread: &Subject, turn: Option<TurnToken>) -> Vec<Option<Refusal>> {
    let mut answers = Vec::new();
    let metadata = MetadataChange {
        new: json("{}"),
        old: None,
    };
    for operations in [
        &[set("k", "2")][..],
        &[push("list", "1")],
        &[increment("k", 1)],
        &[delete("k"), set("k", "1")],
        &[],
    ] {
        let write = Write {
            operations,
            conditions: Conditions {
                turn,
                ..Conditions::default()
            },
            ..thread.blank()
        };
        answers.push(thread.write(&write).await.err());
    }
    let write = Write {
        metadata: Some(&metadata),
        ttl: Some(Duration::from_secs(60)),
        conditions: Conditions {
            turn,
            ..Conditions::default()
        },
        ..thread.blank()
    };
    answers.push(thread.write(&write).await.err());
    let scope = room.scope_of(thread);
    let policy = ScopePolicies::DEFAULT.of(&scope.id);
    let operations = [scope_room::set("k", "1")];
    let items = [scope_room::item("1", "1")];
    let write = ScopeWrite {
        operations: &operations,
        history: &items,
        conditions: Conditions {
            turn,
            ..Conditions::default()
        },
        ..ScopeWrite::new(&policy)
    };
    let written = room.backend.write_scope(&scope.id, &write).await;
    answers.push(refused(written).err());
    let end = ScopeEnd {
        turn,
        ..ScopeEnd::new(Access::All)
    };
    let ended = room.backend.end_scope(&scope.id, &end).await;
    answers.push(refused(ended).err());
    let destroy = Destroy {
        conditions: Conditions {
            turn,
            ..Conditions::default()
        },
        ..thread.end()
    };
    answers.push(thread.destroy_by(&destroy).await.err());
    answers
}

fn is_taken(refusal: Option<Refusal>) -> bool {
    matches!(refusal, Some(Refusal::TurnTaken { .. }))
}

async fn a_turn_is_held_until_it_is_ended(room: Room) {
    let thread = living(&room).await;

    let first = take(&room, &thread, shared_turn()).await.unwrap();
    let meanwhile = take(&room, &thread, shared_turn()).await;
    let was_held = is_held(&room, &thread).await;
    end(&room, &thread, first.token).await.unwrap();
    let is_free = !is_held(&room, &thread).await;
    let second = take(&room, &thread, shared_turn()).await.unwrap();

    let Err(Refusal::TurnTaken { ends_ms, left_ms }) = meanwhile else {
        panic!("{meanwhile:?}");
    };
    assert_eq!(ends_ms, first.ends_ms);
    assert!((1..=30_000).contains(&left_ms), "{left_ms}");
    assert!(was_held && is_free);
    assert_ne!(first.token, second.token);
}

async fn a_turn_expires(room: Room) {
    let thread = living(&room).await;
    let first = take(&room, &thread, shared_turn()).await.unwrap();

    room.advance(TTL);

    assert!(!is_held(&room, &thread).await);
    let second = take(&room, &thread, shared_turn()).await.unwrap();
    assert!(second.ends_ms > first.ends_ms);
    // the token of the expired turn cannot end the second turn
    assert_eq!(
        end(&room, &thread, first.token).await,
        Err(Refusal::TurnLost)
    );
    assert!(is_held(&room, &thread).await);
}

async fn turns_are_numbered_from_one_in_each_life(room: Room) {
    let thread = living(&room).await;
    let before = state(&room, &thread).await;
    let first = take(&room, &thread, exclusive_turn()).await.unwrap();
    take(&room, &thread, shared_turn()).await.unwrap_err();
    let renewed = renew(&room, &thread, first.token).await.unwrap();
    let held = state(&room, &thread).await;
    end(&room, &thread, first.token).await.unwrap();
    let released = state(&room, &thread).await;
    let second = take(&room, &thread, shared_turn()).await.unwrap();
    room.advance(TTL);
    let expired = state(&room, &thread).await;
    let third = take(&room, &thread, shared_turn()).await.unwrap();
    room.advance(ThreadPolicy::THREAD.ttl);
    let write = Write {
        tombstone: Tombstone::Ignored,
        ..thread.blank()
    };
    thread.write(&write).await.unwrap();
    let reborn = state(&room, &thread).await;
    let fourth = take(&room, &thread, shared_turn()).await.unwrap();

    let numbers = [first, renewed, second, third, fourth].map(|granted| granted.number);
    assert_eq!(numbers, [1, 1, 2, 3, 1]);
    let free = |number| TurnState { number, held: None };
    assert_eq!([before, released], [free(0), free(1)]);
    assert_eq!([expired, reborn], [free(2), free(0)]);
    let by_first = TurnHeld {
        ends_ms: renewed.ends_ms,
        exclusive: true,
    };
    assert_eq!((held.number, held.held), (1, Some(by_first)));
    assert_eq!(state(&room, &room.subject()).await, free(0));
}

async fn a_turn_can_be_ended_twice(room: Room) {
    let thread = living(&room).await;
    let turn = take(&room, &thread, shared_turn()).await.unwrap();

    end(&room, &thread, turn.token).await.unwrap();
    end(&room, &thread, turn.token).await.unwrap();

    let late = take(&room, &thread, shared_turn()).await.unwrap();
    room.advance(TTL);
    end(&room, &thread, turn.token).await.unwrap();
    end(&room, &thread, late.token).await.unwrap();
    let nothing = room.subject();
    end(&room, &nothing, late.token).await.unwrap();
}

async fn a_turn_can_be_renewed_until_a_later_turn_is_granted(room: Room) {
    let thread = living(&room).await;
    let turn = take(&room, &thread, shared_turn()).await.unwrap();

    room.advance(20 * SECOND);
    let renewed = renew(&room, &thread, turn.token).await.unwrap();
    room.advance(20 * SECOND);
    let is_still_held = is_held(&room, &thread).await;
    room.advance(TTL);
    let late = renew(&room, &thread, turn.token).await.unwrap();

    assert_eq!(renewed.token, turn.token);
    assert!(renewed.ends_ms >= turn.ends_ms + 20_000);
    assert!(is_still_held);
    assert!(late.ends_ms > renewed.ends_ms);
    room.advance(TTL);
    take(&room, &thread, shared_turn()).await.unwrap();
    let lost = Err(Refusal::TurnLost);
    assert_eq!(renew(&room, &thread, turn.token).await, lost);
    assert_eq!(renew(&room, &thread, TurnToken::random()).await, lost);
    assert_eq!(renew(&room, &room.subject(), turn.token).await, lost);
}

async fn an_ended_turn_cannot_be_renewed(room: Room) {
    let thread = living(&room).await;
    let turn = take(&room, &thread, shared_turn()).await.unwrap();
    end(&room, &thread, turn.token).await.unwrap();

    let renewed = renew(&room, &thread, turn.token).await;

    assert_eq!(renewed, Err(Refusal::TurnLost));
    assert!(!is_held(&room, &thread).await);
}

async fn a_write_of_a_lost_turn_changes_nothing(room: Room) {
    let thread = living(&room).await;
    let stalled = take(&room, &thread, shared_turn()).await.unwrap();
    room.advance(TTL);
    let current = take(&room, &thread, shared_turn()).await.unwrap();
    let before = (thread.stamp().await, thread.state().await);

    let late = refusals(&room, &thread, Some(stalled.token)).await;
    let foreign = refusals(&room, &thread, Some(TurnToken::random())).await;

    let lost = vec![Some(Refusal::TurnLost); late.len()];
    assert_eq!((&late, &foreign), (&lost, &lost));
    assert_eq!((thread.stamp().await, thread.state().await), before);
    end(&room, &thread, current.token).await.unwrap();
    let late = write_by(&thread, Some(stalled.token)).await;
    assert_eq!(
        late,
        Err(Refusal::TurnLost),
        "also when the later turn is over"
    );
}

async fn every_kind_of_write_may_carry_the_token(room: Room) {
    for ask in [shared_turn(), exclusive_turn()] {
        let thread = living(&room).await;
        let turn = take(&room, &thread, ask).await.unwrap();

        let refusals = refusals(&room, &thread, Some(turn.token)).await;

        assert!(refusals.iter().all(Option::is_none), "{refusals:?}");
        assert!(!thread.exists().await);
    }
}

async fn an_expired_turn_can_write_until_a_later_turn_is_granted(room: Room) {
    let thread = living(&room).await;
    let turn = take(&room, &thread, exclusive_turn()).await.unwrap();

    room.advance(TTL + SECOND);

    write_by(&thread, Some(turn.token)).await.unwrap();
    write_by(&thread, None).await.unwrap();
}

async fn others_can_write_during_a_turn_unless_it_is_exclusive(room: Room) {
    let thread = living(&room).await;
    let shared = take(&room, &thread, shared_turn()).await.unwrap();
    write_by(&thread, None).await.unwrap();
    end(&room, &thread, shared.token).await.unwrap();
    take(&room, &thread, exclusive_turn()).await.unwrap();
    let before = (thread.stamp().await, thread.state().await);

    let refusals = refusals(&room, &thread, None).await;

    assert!(refusals.into_iter().all(is_taken));
    assert_eq!((thread.stamp().await, thread.state().await), before);
}

async fn an_ended_exclusive_turn_blocks_no_writer(room: Room) {
    let thread = living(&room).await;
    let turn = take(&room, &thread, exclusive_turn()).await.unwrap();
    end(&room, &thread, turn.token).await.unwrap();
    write_by(&thread, None).await.unwrap();
    take(&room, &thread, exclusive_turn()).await.unwrap();

    room.advance(TTL);

    write_by(&thread, None).await.unwrap();
    write_by(&thread, None).await.unwrap();
    let refusals = refusals(&room, &thread, None).await;
    assert!(refusals.iter().all(Option::is_none), "{refusals:?}");
}

async fn a_renewed_exclusive_turn_is_exclusive_again(room: Room) {
    let thread = living(&room).await;
    let turn = take(&room, &thread, exclusive_turn()).await.unwrap();
    room.advance(TTL);
    write_by(&thread, None).await.unwrap();

    renew(&room, &thread, turn.token).await.unwrap();

    assert!(is_taken(write_by(&thread, None).await.err()));
    write_by(&thread, Some(turn.token)).await.unwrap();
}

async fn a_turn_is_not_part_of_the_state_and_survives_a_clear(room: Room) {
    let thread = living(&room).await;
    let stamp = thread.stamp().await;
    let turn = take(&room, &thread, exclusive_turn()).await.unwrap();

    assert_eq!(thread.stamp().await, stamp);
    let clear = [threadkeep_domain::Operation::Clear];
    let write = Write {
        operations: &clear,
        conditions: Conditions {
            turn: Some(turn.token),
            ..Conditions::default()
        },
        ..thread.blank()
    };
    let written = thread.write(&write).await.unwrap();

    assert_eq!(written.size_bytes, 2);
    assert_eq!(thread.state().await.as_deref(), Some("{}"));
    assert!(is_taken(write_by(&thread, None).await.err()));
    renew(&room, &thread, turn.token).await.unwrap();
}

async fn a_turn_extends_the_lifetime_of_its_thread(room: Room) {
    let thread = living(&room).await;
    room.advance(Duration::from_secs(3_000));
    let turn = take(&room, &thread, shared_turn()).await.unwrap();
    room.advance(Duration::from_secs(3_000));
    renew(&room, &thread, turn.token).await.unwrap();
    room.advance(Duration::from_secs(3_000));

    assert!(thread.exists().await);
}

async fn a_turn_needs_a_thread(room: Room) {
    let thread = room.subject();

    let taken = take(&room, &thread, shared_turn()).await;

    assert_eq!(taken, Err(Refusal::NoThread));
    assert!(!is_held(&room, &thread).await);
    let written = write_by(&thread, Some(TurnToken::random())).await;
    assert_eq!(written, Err(Refusal::TurnLost));
    assert!(!thread.exists().await);
}

async fn a_token_belongs_to_one_life(room: Room) {
    let thread = living(&room).await;
    let turn = take(&room, &thread, exclusive_turn()).await.unwrap();
    room.advance(ThreadPolicy::THREAD.ttl);
    let write = Write {
        tombstone: Tombstone::Ignored,
        ..thread.blank()
    };
    thread.write(&write).await.unwrap();

    let late = write_by(&thread, Some(turn.token)).await;

    assert_eq!(late, Err(Refusal::TurnLost));
    assert!(!is_held(&room, &thread).await);
    write_by(&thread, None).await.unwrap();
}

async fn a_restored_thread_has_no_turn(room: Room) {
    let thread = living(&room).await;
    let turn = take(&room, &thread, exclusive_turn()).await.unwrap();
    let destroy = Destroy {
        conditions: Conditions {
            turn: Some(turn.token),
            ..Conditions::default()
        },
        ..thread.end()
    };
    thread.destroy_by(&destroy).await.unwrap();

    let restored = room.backend.restore(&thread.id, None, &thread.policy).await;

    assert!(restored.unwrap().is_some());
    assert!(!is_held(&room, &thread).await);
    write_by(&thread, None).await.unwrap();
    let late = write_by(&thread, Some(turn.token)).await;
    assert_eq!(late, Err(Refusal::TurnLost));
}

async fn a_repeat_gets_the_same_turn(room: Room) {
    let thread = living(&room).await;
    let ask = |key: Option<IdempotencyKey>| TakeTurn {
        idempotency: key,
        ..shared_turn()
    };
    let first = take(&room, &thread, ask(Some(numbered_key(1)))).await;
    let first = first.unwrap();

    let again = take(&room, &thread, ask(Some(numbered_key(1)))).await;
    let reused = thread.merge_once(numbered_key(1), &[]).await;

    let replayed = TurnGranted {
        replayed: true,
        ..first
    };
    assert_eq!(again, Ok(replayed));
    assert_eq!(reused, Err(Refusal::IdempotencyKeyReused));
    assert!(!first.replayed);
}

async fn recalling_a_turn_by_its_key_grants_no_turn(room: Room) {
    let thread = living(&room).await;
    let recall = async |number| {
        let key = numbered_key(number);
        let recalled = room.backend.recall_turn(&thread.id, Access::All, key);
        refused(recalled.await)
    };
    let before = recall(1).await;
    assert!(!is_held(&room, &thread).await);
    let once = TakeTurn {
        idempotency: Some(numbered_key(1)),
        ..shared_turn()
    };
    let first = take(&room, &thread, once).await.unwrap();
    end(&room, &thread, first.token).await.unwrap();
    let second = take(&room, &thread, shared_turn()).await.unwrap();

    let after = recall(1).await;

    let granted = TurnGranted {
        replayed: true,
        ..first
    };
    assert_eq!((before, after), (Ok(None), Ok(Some(granted))));
    assert_eq!(recall(2).await, Ok(None));
    thread.merge_once(numbered_key(3), &[]).await.unwrap();
    assert_eq!(recall(3).await, Err(Refusal::IdempotencyKeyReused));
    renew(&room, &thread, second.token).await.unwrap();
    room.advance(ThreadPolicy::THREAD.ttl);
    assert_eq!(recall(1).await, Ok(None), "the thread has ended");
    let nothing = room.subject();
    let key = numbered_key(1);
    let recalled = room
        .backend
        .recall_turn(&nothing.id, Access::All, key)
        .await;
    assert_eq!(refused(recalled), Ok(None));
    assert!(!nothing.exists().await);
}

async fn a_repeated_write_is_replayed_after_its_turn_was_lost(room: Room) {
    let thread = living(&room).await;
    let turn = take(&room, &thread, shared_turn()).await.unwrap();
    let operations = [increment("n", 1)];
    let write = Write {
        operations: &operations,
        conditions: Conditions {
            turn: Some(turn.token),
            idempotency: Some(numbered_key(1)),
            ..Conditions::default()
        },
        ..thread.blank()
    };
    let first = thread.write(&write).await.unwrap();
    room.advance(TTL);
    take(&room, &thread, shared_turn()).await.unwrap();

    let again = thread.write(&write).await.unwrap();

    assert!(again.replayed);
    assert_eq!(again.stamp, first.stamp);
    assert_eq!(thread.value("n").await.as_deref(), Some("1"));
}

async fn waiting_callers_are_notified_of_the_end(room: Room) {
    let mut ended = room.backend.ended_turns();
    // retry, because a new subscription misses messages until it is active
    let first = tokio::time::timeout(TTL, async {
        loop {
            let thread = living(&room).await;
            let turn = take(&room, &thread, shared_turn()).await.unwrap();
            let waiting = TakeTurn {
                waits: true,
                ..shared_turn()
            };
            assert!(is_taken(take(&room, &thread, waiting).await.err()));
            end(&room, &thread, turn.token).await.unwrap();
            let received = tokio::time::timeout(SECOND / 10, ended.recv()).await;
            if let Ok(received) = received {
                return (received.unwrap(), thread.id);
            }
        }
    });
    let (received, expected) = first.await.unwrap();

    // the message of an earlier round may arrive late
    assert!(received == expected || room.backend.get_turn(&received, Access::All).await.is_ok());
}

async fn one_of_several_concurrent_callers_gets_the_turn(room: Room) {
    let thread = living(&room).await;
    let backend = &room.backend;
    let granted = std::sync::atomic::AtomicUsize::new(0);

    room.for_each_concurrently(0..32, async |_| {
        if backend
            .take_turn(&thread.id, Access::All, &shared_turn())
            .await
            .is_ok()
        {
            granted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    })
    .await;

    assert_eq!(granted.into_inner(), 1);
}

super::over_every_store_and_confirmed!(
    a_turn_is_held_until_it_is_ended,
    a_turn_expires,
    turns_are_numbered_from_one_in_each_life,
    a_turn_can_be_ended_twice,
    a_turn_can_be_renewed_until_a_later_turn_is_granted,
    an_ended_turn_cannot_be_renewed,
    a_write_of_a_lost_turn_changes_nothing,
    every_kind_of_write_may_carry_the_token,
    an_expired_turn_can_write_until_a_later_turn_is_granted,
    others_can_write_during_a_turn_unless_it_is_exclusive,
    an_ended_exclusive_turn_blocks_no_writer,
    a_renewed_exclusive_turn_is_exclusive_again,
    a_turn_is_not_part_of_the_state_and_survives_a_clear,
    a_turn_extends_the_lifetime_of_its_thread,
    a_turn_needs_a_thread,
    a_token_belongs_to_one_life,
    a_restored_thread_has_no_turn,
    a_repeat_gets_the_same_turn,
    recalling_a_turn_by_its_key_grants_no_turn,
    a_repeated_write_is_replayed_after_its_turn_was_lost,
    waiting_callers_are_notified_of_the_end,
    one_of_several_concurrent_callers_gets_the_turn,
);

//! Limits of the ledger of effects, and which effects make room for a new one.

use threadkeep_domain::effects::{
    EFFECTS_MAX, Effect, EffectState, OPEN_MAX, OUTCOME_BYTES_MAX, Outcome, RESULTS_BYTES_MAX,
};

use super::effects::{Holder, Ledger, NOT_FOUND, TOO_MANY, TURN_TTL, call, error, result};
use super::response_room::Response;
use super::room::Room;
use super::turns::living;
use threadkeep_domain::Release;

/// Number of outcomes of the maximum size that reach the limit of all results.
const LARGEST_MAX: usize = (RESULTS_BYTES_MAX / OUTCOME_BYTES_MAX) as usize;

fn name(number: usize) -> String {
    format!("call_{number}")
}

/// Returns a JSON string of `bytes` bytes, including its quotes.
fn text_of(bytes: u64) -> String {
    format!("\"{}\"", "x".repeat(bytes as usize - 2))
}

fn largest_result() -> Outcome {
    result(&text_of(OUTCOME_BYTES_MAX))
}

fn largest_error() -> Outcome {
    error(&text_of(OUTCOME_BYTES_MAX))
}

/// Runs effects until there is no room for another result.
async fn fill(holder: &Holder<'_>, outcome: Outcome) {
    for number in 0..LARGEST_MAX {
        holder.run(&name(number), outcome.clone()).await;
    }
}

/// Asserts that the holder can begin no effect, and that the attempt changes nothing.
async fn assert_full(ledger: Ledger<'_>, holder: &Holder<'_>) {
    let before = ledger.list(None, None, 2 * EFFECTS_MAX).await;

    let begun = holder.try_begin(&call("one_more")).await;

    assert_eq!(begun, Err(TOO_MANY));
    let after = ledger.list(None, None, 2 * EFFECTS_MAX).await;
    assert!(after == before, "{} of {}", after.len(), before.len());
}

async fn a_thread_has_at_most_64_open_effects(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    for number in 0..OPEN_MAX {
        first.grant(&name(number)).await;
    }
    assert_full(ledger, &first).await;
    let known = first.begin(&call(&name(0))).await;
    assert_eq!(known.state, EffectState::Running);
    first.release().await;

    let second = ledger.take().await;
    assert_eq!(second.turn.in_doubt, 64);
    assert_full(ledger, &second).await;
    // a further attempt of an open effect needs no room
    let retried = second.begin(&call(&name(0)).retry(1)).await;
    assert_eq!(retried.state, EffectState::Granted);
    assert_full(ledger, &second).await;
    second.settle(&name(1), result("1")).await.unwrap();
    second.grant("one_more").await;
    let begun = second.try_begin(&call("yet_another")).await;
    assert_eq!(begun, Err(TOO_MANY));
}

async fn a_retry_of_a_failed_effect_needs_room_for_an_open_effect(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let holder = ledger.take().await;
    holder.run("failed", error("1")).await;
    for number in 1..OPEN_MAX {
        holder.grant(&name(number)).await;
    }
    let last = holder.grant("last").await;
    let retry = call("failed").retry(1);

    let refused = holder.try_begin(&retry).await;
    let failed = holder.begin(&call("failed")).await;
    ledger.settle(&last, result("1")).await.unwrap();
    let retried = holder.begin(&retry).await;

    assert_eq!(refused, Err(TOO_MANY));
    assert_eq!((failed.attempt, failed.outcome), (1, Some(error("1"))));
    assert_eq!((retried.state, retried.attempt), (EffectState::Granted, 2));
}

async fn the_oldest_settled_effects_make_room_once_a_later_turn_was_released(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    let open = first.grant(&name(0)).await;
    let oldest = first.run(&name(1), result("1")).await;
    first.run(&name(2), error("1")).await;
    for number in 3..EFFECTS_MAX {
        first.run(&name(number), result("1")).await;
    }
    assert_full(ledger, &first).await;
    // a turn that crashed can be resumed with all of its results
    room.advance(TURN_TTL);
    let second = ledger.take().await;
    assert_full(ledger, &second).await;
    assert_eq!(ledger.ids(None).await.len(), EFFECTS_MAX);
    second.release().await;
    let third = ledger.take().await;

    third.grant("new").await;

    let ids = ledger.ids(None).await;
    assert_eq!((ids.len(), ids[0].as_str()), (EFFECTS_MAX, "new"));
    // the open effect stays
    let tail = [name(4), name(3), name(2), name(0)];
    assert_eq!(ids[EFFECTS_MAX - 4..], tail);
    assert_eq!(ledger.get(&name(1)).await, None);
    let late = ledger.settle(&oldest, result("1")).await;
    assert_eq!(late, Err(NOT_FOUND));
    third.grant("newer").await;
    assert_eq!(ledger.get(&name(2)).await, None);
    ledger.settle(&open, result("1")).await.unwrap();
    third.grant("newest").await;
    // the current turn has recorded this result
    assert!(ledger.get(&name(0)).await.is_some());
    assert_eq!(ledger.get(&name(3)).await, None);
    // an id that made room is free again
    let again = third.grant(&name(1)).await;
    assert_ne!(again.key, oldest.key);
    let ids = ledger.ids(None).await;
    assert_eq!(ids.len(), EFFECTS_MAX);
    assert_eq!(ids[..4], [name(1).as_str(), "newest", "newer", "new"]);
    assert_eq!(ids[EFFECTS_MAX - 2..], [name(5), name(0)]);
}

async fn effects_of_incomplete_turns_make_no_room(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    fill(&first, largest_result()).await;
    first.release_as(Release::Incomplete).await;

    let second = ledger.take().await;
    assert_full(ledger, &second).await;
    second.release().await;

    let third = ledger.take().await;
    third.grant("new").await;
    assert_eq!(ledger.get(&name(0)).await, None);
}

async fn a_result_stays_until_the_turn_that_read_it_is_complete(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    fill(&first, largest_result()).await;
    first.release().await;
    let second = ledger.take().await;

    let read = second.begin(&call(&name(0))).await;
    second.run("new", largest_result()).await;

    assert_eq!(read.state, EffectState::Done);
    assert!(ledger.get(&name(0)).await.is_some());
    assert_eq!(ledger.get(&name(1)).await, None);
    second.release().await;
    ledger.take().await.grant("newer").await;
    assert_eq!(ledger.get(&name(0)).await, None);
}

async fn open_effects_have_room_for_their_results(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    for number in 1..LARGEST_MAX {
        first.run(&name(number), largest_result()).await;
    }
    // one byte is free
    let almost = result(&text_of(OUTCOME_BYTES_MAX - 1));
    first.run("almost", almost).await;
    let mut open = Vec::<Effect>::new();
    for number in 0..OPEN_MAX {
        open.push(first.grant(&format!("open_{number}")).await);
    }

    for granted in &open {
        ledger.settle(granted, largest_result()).await.unwrap();
    }

    assert_full(ledger, &first).await;
    let last = ledger.get("open_63").await.unwrap();
    assert_eq!(last.outcome, Some(largest_result()));
    first.release().await;
    // one begin removes at most 64 effects to make room for results
    let second = ledger.take().await;
    second.grant("new").await;
    let ids = ledger.ids(None).await;
    assert_eq!((ids.len(), ids[0].as_str()), (OPEN_MAX + 1, "new"));
    assert_eq!(ids[OPEN_MAX], "open_0");
}

async fn a_begin_that_cannot_get_enough_room_removes_nothing(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    first.run("old", result("1")).await;
    first.release().await;
    let second = ledger.take().await;
    fill(&second, largest_result()).await;

    assert_full(ledger, &second).await;
    room.advance(TURN_TTL);
    let third = ledger.take().await;
    assert_full(ledger, &third).await;
    let old = ledger.get("old").await.unwrap();
    assert_eq!(old.outcome, Some(result("1")));

    third.release().await;
    ledger.take().await.grant("new").await;
    assert_eq!(ledger.get("old").await, None);
    assert_eq!(ledger.get(&name(0)).await, None);
    assert_eq!(ledger.ids(None).await.len(), LARGEST_MAX);
}

async fn a_retry_frees_the_room_of_the_earlier_error(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let holder = ledger.take().await;
    fill(&holder, largest_error()).await;
    assert_full(ledger, &holder).await;

    let retried = holder.begin(&call(&name(7)).retry(1)).await;
    holder.grant("new").await;
    ledger.settle(&retried, largest_result()).await.unwrap();

    assert_full(ledger, &holder).await;
    assert_eq!(ledger.ids(None).await.len(), LARGEST_MAX + 1);
}

async fn an_effect_belongs_to_the_turn_of_its_last_attempt(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    fill(&first, largest_error()).await;
    first.release().await;
    let second = ledger.take().await;

    for number in 0..LARGEST_MAX {
        let retried = second.begin(&call(&name(number)).retry(1)).await;
        ledger.settle(&retried, largest_result()).await.unwrap();
    }

    assert_full(ledger, &second).await;
    second.release().await;
    ledger.take().await.grant("new").await;
    assert_eq!(ledger.get(&name(0)).await, None);
}

async fn a_turn_of_a_response_makes_no_room(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let scope = room.scope_of(&thread);
    fill(&ledger.take().await, largest_result()).await;
    room.advance(TURN_TTL);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;
    response.end(Some(token), 0, "answer").await.unwrap();

    let third = ledger.take().await;
    assert_eq!(third.turn.number, 3);
    assert_full(ledger, &third).await;
}

super::over_every_store! {
    a_thread_has_at_most_64_open_effects,
    a_retry_of_a_failed_effect_needs_room_for_an_open_effect,
    the_oldest_settled_effects_make_room_once_a_later_turn_was_released,
    effects_of_incomplete_turns_make_no_room,
    a_result_stays_until_the_turn_that_read_it_is_complete,
    open_effects_have_room_for_their_results,
    a_begin_that_cannot_get_enough_room_removes_nothing,
    a_retry_frees_the_room_of_the_earlier_error,
    an_effect_belongs_to_the_turn_of_its_last_attempt,
    a_turn_of_a_response_makes_no_room,
}

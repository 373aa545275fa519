//! Effects of threads that move, are copied, end and begin again.

use threadkeep_domain::effects::{Effect, EffectState};
use threadkeep_domain::{
    Access, Conditions, Fork, IfExists, Import, Included, Refusal, ThreadPolicy, Tombstone,
    TurnNumbers, TurnState,
};

use super::effects::{Holder, Ledger, NOT_FOUND, TURN_TTL, call, error, lost, result, seen};
use super::erasure::{erase, give, owned};
use super::forks::{fork, ids};
use super::images::{export, import};
use super::room::{Room, Subject, set};
use super::rotations::rotate;
use super::turns::living;

/// Effects that two turns began: the first turn was released, and the second turn is held.
struct Begun<'a> {
    doubt: Effect,
    done: Effect,
    /// Begun with idempotency key 1.
    running: Effect,
    second: Holder<'a>,
}

const IDS: [&str; 4] = ["doubt", "done", "failed", "running"];

/// Begins an effect for each state.
async fn begin_each(ledger: Ledger<'_>) -> Begun<'_> {
    let first = ledger.take().await;
    let doubt = first.grant("doubt").await;
    let done = first.run("done", result("1.0")).await;
    first.run("failed", error("[]")).await;
    first.release().await;
    let second = ledger.take().await;
    Begun {
        doubt,
        done,
        running: second.begin(&call("running").keyed(1)).await,
        second,
    }
}

/// Returns the effects with these ids, without their positions.
async fn found(ledger: Ledger<'_>, ids: &[&str]) -> Vec<Effect> {
    let mut found = Vec::new();
    for id in ids {
        let effect = ledger.get(id).await.unwrap();
        found.push(Effect {
            position: 0,
            ..effect
        });
    }
    found
}

/// Returns the effects as a copy of the thread shows them: no turn of the copy runs an effect.
fn in_a_copy(effects: &[Effect]) -> Vec<Effect> {
    let copy = |effect: &Effect| Effect {
        state: match effect.state {
            EffectState::Running => EffectState::InDoubt,
            state => state,
        },
        ..effect.clone()
    };
    effects.iter().map(copy).collect()
}

async fn turn_state(room: &Room, thread: &Subject) -> TurnState {
    let turn = room.backend.get_turn(&thread.id, Access::All).await;
    turn.unwrap()
}

fn free(number: u32) -> TurnState {
    TurnState { number, held: None }
}

async fn fork_all(room: &Room, source: &Subject, copy: &Subject) {
    let forked = room.backend.fork(&source.id, &copy.id, &fork(source)).await;
    forked.unwrap();
}

async fn import_all(room: &Room, source: &Subject, copy: &Subject) {
    let image = export(source, room).await.unwrap();
    let imported = room.backend.import(&copy.id, &import(&image, copy)).await;
    imported.unwrap();
}

async fn effects_and_fences_move_with_a_rotated_thread(room: Room) {
    let thread = living(&room).await;
    let old = room.effects_of(&thread);
    let begun = begin_each(old).await;
    let before = found(old, &IDS).await;

    let new = rotate(&room, &thread).await;

    let moved = room.effects_of(&new);
    let second = moved.holder(begun.second.turn);
    assert_eq!(found(moved, &IDS).await, before);
    assert_eq!(second.renew().await.unwrap().in_doubt, 1);
    let again = second.begin(&call("running").keyed(1)).await;
    assert_eq!(again, begun.running);
    for granted in [&begun.doubt, &begun.running] {
        let settled = moved.settle(granted, result("2")).await.unwrap();
        assert!(!settled.repeated);
    }
    second.grant("new").await;
    assert_eq!(
        moved.ids(None).await,
        ["new", "running", "failed", "done", "doubt"]
    );
    second.release().await;
    assert_eq!(moved.take().await.turn.number, 3);
}

async fn a_rotation_leaves_no_effects_under_the_old_id(room: Room) {
    let thread = living(&room).await;
    let old = room.effects_of(&thread);
    let begun = begin_each(old).await;

    rotate(&room, &thread).await;

    assert_eq!(old.get("done").await, None);
    assert!(old.ids(None).await.is_empty());
    let late = old.settle(&begun.running, result("1")).await;
    assert_eq!(late, Err(NOT_FOUND));
    let late = begun.second.try_begin(&call("running")).await;
    assert_eq!(late, Err(Refusal::TurnLost));
    room.advance(thread.policy.tombstone);
    thread.merge(&[set("k", "1")]).await;
    assert!(old.ids(None).await.is_empty());
    let turn = old.take().await.turn;
    assert_eq!((turn.number, turn.in_doubt), (1, 0));
}

async fn a_fork_copies_effects_without_their_fences(room: Room) {
    let source = living(&room).await;
    let ledger = room.effects_of(&source);
    let begun = begin_each(ledger).await;
    let before = found(ledger, &IDS).await;
    for copy in ids(&room, &source) {
        fork_all(&room, &source, &copy).await;

        let copied = room.effects_of(&copy);
        let mut expected = in_a_copy(&before);
        expected.iter_mut().for_each(|effect| effect.turn = 0);
        assert_eq!(found(copied, &IDS).await, expected);
        assert_eq!(
            copied.ids(None).await,
            ["running", "failed", "done", "doubt"]
        );
        for (granted, outcome) in [
            (&begun.doubt, result("2")),
            (&begun.running, result("2")),
            (&begun.done, result("1.0")),
        ] {
            assert_eq!(copied.settle(granted, outcome).await, Err(lost(1)));
        }
        assert_eq!(found(copied, &IDS).await, expected);
    }
    // the source is unchanged
    assert_eq!(found(ledger, &IDS).await, before);
    let again = begun.second.begin(&call("running").keyed(1)).await;
    assert_eq!(again, begun.running);
    ledger.settle(&begun.running, result("1")).await.unwrap();
}

async fn the_turns_of_a_fork_settle_and_retry_copied_effects(room: Room) {
    let source = living(&room).await;
    let ledger = room.effects_of(&source);
    let begun = begin_each(ledger).await;
    let before = found(ledger, &IDS).await;
    for copy in ids(&room, &source) {
        fork_all(&room, &source, &copy).await;
        let copied = room.effects_of(&copy);
        assert_eq!(turn_state(&room, &copy).await, free(0));
        let first = copied.take().await;
        assert_eq!(first.turn.number, 1);
        first.release().await;

        // this turn has the same number as the source's turn that began the effect
        let second = copied.take().await;
        let doubt = second.begin(&call("running").keyed(1)).await;
        let settled = second.settle("running", error("3")).await.unwrap();
        let retried = second.begin(&call("doubt").retry(1)).await;

        assert_eq!(second.turn.number, begun.second.turn.number);
        assert_eq!(doubt.state, EffectState::InDoubt);
        assert_eq!(settled.effect.outcome, Some(error("3")));
        assert_eq!(
            (retried.state, retried.attempt, retried.turn, retried.key),
            (EffectState::Granted, 2, 2, begun.doubt.key)
        );
        assert_eq!(copied.settle(&begun.doubt, result("1")).await, Err(lost(2)));
        copied.settle(&retried, result("1")).await.unwrap();
        assert_eq!(second.renew().await.unwrap().in_doubt, 0);
        assert_eq!(found(ledger, &IDS).await, before);
    }
}

async fn the_first_turn_of_a_fork_counts_the_copied_effects_in_doubt(room: Room) {
    let source = living(&room).await;
    begin_each(room.effects_of(&source)).await;
    for copy in ids(&room, &source) {
        fork_all(&room, &source, &copy).await;
        let copied = room.effects_of(&copy);

        let first = copied.take().await;

        assert_eq!(first.turn.in_doubt, 2);
        assert_eq!(first.renew().await.unwrap().in_doubt, 2);
    }
}

async fn a_fork_of_a_fork_copies_the_effects_of_both(room: Room) {
    let source = living(&room).await;
    let begun = begin_each(room.effects_of(&source)).await;
    for copy in ids(&room, &source) {
        fork_all(&room, &source, &copy).await;
        let copied = room.effects_of(&copy);
        let own = copied.take().await.grant("own").await;
        for next in ids(&room, &copy) {
            fork_all(&room, &copy, &next).await;

            let ledger = room.effects_of(&next);
            assert_eq!(
                ledger.ids(Some(EffectState::InDoubt)).await,
                ["own", "running", "doubt"]
            );
            assert_eq!(ledger.get("own").await.unwrap().turn, 0);
            assert_eq!(ledger.get("own").await.unwrap().key, own.key);
            for granted in [&own, &begun.running, &begun.doubt] {
                let late = ledger.settle(granted, result("1")).await;
                assert_eq!(late, Err(lost(1)));
            }
        }
        copied.settle(&own, result("1")).await.unwrap();
    }
}

async fn a_fork_without_the_history_has_no_effects(room: Room) {
    let source = living(&room).await;
    let begun = begin_each(room.effects_of(&source)).await;
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

        let copied = room.effects_of(&copy);
        assert!(copied.ids(None).await.is_empty());
        let first = copied.take().await;
        assert_eq!(first.turn.in_doubt, 0);
        let granted = first.grant("done").await;
        assert_ne!(granted.key, begun.done.key);
    }
}

async fn an_image_has_the_effects_and_the_numbers_of_the_turns(room: Room) {
    let thread = living(&room).await;
    let empty = export(&thread, &room).await.unwrap();
    let ledger = room.effects_of(&thread);
    begin_each(ledger).await;

    let image = export(&thread, &room).await.unwrap();

    assert_eq!(empty.turns, TurnNumbers::default());
    assert!(empty.effects.is_empty());
    let numbers = TurnNumbers {
        last: 2,
        complete: 1,
    };
    assert_eq!(image.turns, numbers);
    let ids: Vec<_> = image
        .effects
        .iter()
        .map(|image| image.id.as_str())
        .collect();
    assert_eq!(ids, IDS);
    for image in &image.effects {
        let effect = ledger.get(image.id.as_str()).await.unwrap();
        assert_eq!(
            (&image.tool, &image.hash, image.attempt, image.key),
            (&effect.tool, &effect.hash, effect.attempt, effect.key)
        );
        assert_eq!(
            (image.turn, image.begun_ms, &image.outcome),
            (effect.turn, effect.begun_ms, &effect.outcome)
        );
    }
    let copy = room.subject();
    import_all(&room, &thread, &copy).await;
    let again = export(&copy, &room).await.unwrap();
    assert_eq!((again.turns, again.effects), (image.turns, image.effects));
}

async fn an_imported_thread_continues_the_turns_and_has_no_fences(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let begun = begin_each(ledger).await;
    let before = found(ledger, &IDS).await;
    let copy = room.subject();

    import_all(&room, &thread, &copy).await;

    let imported = room.effects_of(&copy);
    assert_eq!(found(imported, &IDS).await, in_a_copy(&before));
    for granted in [&begun.doubt, &begun.running] {
        let late = imported.settle(granted, result("1")).await;
        assert_eq!(late, Err(lost(1)));
    }
    assert_eq!(turn_state(&room, &copy).await, free(2));
    let second = imported.holder(begun.second.turn);
    let lost = Refusal::TurnLost;
    assert_eq!(second.try_begin(&call("new")).await, Err(lost));
    assert_eq!(second.settle("doubt", result("1")).await, Err(lost));
    assert_eq!(second.renew().await, Err(lost));

    let third = imported.take().await;
    assert_eq!((third.turn.number, third.turn.in_doubt), (3, 2));
    let doubt = third.begin(&call("running").keyed(1)).await;
    assert_eq!(doubt.state, EffectState::InDoubt);
    let retried = third.begin(&call("running").retry(1)).await;
    assert_eq!((retried.attempt, retried.turn), (2, 3));
    third.settle("doubt", result("1")).await.unwrap();
    third.grant("new").await;
    assert_eq!(
        imported.ids(None).await,
        ["new", "running", "failed", "done", "doubt"]
    );
    assert_eq!(found(ledger, &IDS).await, before);
}

async fn a_replacing_import_replaces_the_effects(room: Room) {
    let thread = living(&room).await;
    begin_each(room.effects_of(&thread)).await;
    let without_effects = living(&room).await;
    let other = living(&room).await;
    room.effects_of(&other).take().await.grant("other").await;

    for (source, ids, number) in [(&other, vec!["other"], 1), (&without_effects, vec![], 0)] {
        let image = export(source, &room).await.unwrap();
        let replacing = Import {
            if_exists: IfExists::Replace,
            ..import(&image, &thread)
        };
        room.backend.import(&thread.id, &replacing).await.unwrap();

        assert_eq!(room.effects_of(&thread).ids(None).await, ids);
        assert_eq!(turn_state(&room, &thread).await, free(number));
    }
}

async fn effects_are_archived_and_restored_with_their_thread(room: Room) {
    for is_destroyed in [true, false] {
        let thread = living(&room).await;
        let ledger = room.effects_of(&thread);
        let begun = begin_each(ledger).await;
        let before = found(ledger, &IDS).await;
        if is_destroyed {
            thread.destroy().await;
        } else {
            room.advance(ThreadPolicy::THREAD.ttl);
            room.reap().await;
        }
        assert_eq!(ledger.get("done").await, None);
        assert!(ledger.ids(None).await.is_empty());
        let late = ledger.settle(&begun.running, result("1")).await;
        assert_eq!(late, Err(NOT_FOUND));
        let late = begun.second.try_begin(&call("new")).await;
        assert_eq!(late, Err(Refusal::TurnLost));

        let restored = room.backend.restore(&thread.id, None, &thread.policy).await;

        restored.unwrap().unwrap();
        assert_eq!(found(ledger, &IDS).await, in_a_copy(&before));
        assert_eq!(turn_state(&room, &thread).await, free(2));
        assert_eq!(begun.second.renew().await, Err(Refusal::TurnLost));
        let late = begun.second.try_begin(&call("new")).await;
        assert_eq!(late, Err(Refusal::TurnLost));
        let third = ledger.take().await;
        assert_eq!((third.turn.number, third.turn.in_doubt), (3, 2));
        let doubt = third.begin(&call("running").keyed(1)).await;
        assert_eq!(doubt.state, EffectState::InDoubt);
        let retried = third.begin(&call("doubt").retry(1)).await;
        assert_eq!((retried.attempt, retried.turn), (2, 3));
        // the content is that of the earlier life, including the fences
        let late = ledger.settle(&begun.running, result("1")).await;
        assert!(!late.unwrap().repeated);
    }
}

async fn a_thread_can_be_restored_with_its_effects_again(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let granted = ledger.take().await.grant("a").await;

    for number in 2..4 {
        thread.destroy().await;
        let restored = room.backend.restore(&thread.id, None, &thread.policy).await;
        restored.unwrap().unwrap();

        let doubt = seen(&granted, EffectState::InDoubt, None);
        assert_eq!(ledger.get("a").await, Some(doubt));
        let turn = ledger.take().await.turn;
        assert_eq!((turn.number, turn.in_doubt), (number, 1));
    }
}

async fn each_life_is_restored_with_its_own_effects(room: Room) {
    let thread = room.subject();
    let ledger = room.effects_of(&thread);
    let mut lives = Vec::new();
    for id in ["a", "b"] {
        lives.push(thread.merge(&[set("k", "1")]).await.stamp.life);
        assert!(ledger.ids(None).await.is_empty());
        let holder = ledger.take().await;
        assert_eq!(holder.turn.number, 1);
        holder.grant(id).await;
        thread.destroy().await;
        room.advance(thread.policy.tombstone);
    }

    for (life, id) in lives.into_iter().zip(["a", "b"]) {
        let restored = room
            .backend
            .restore(&thread.id, Some(life), &thread.policy)
            .await;
        restored.unwrap().unwrap();
        assert_eq!(ledger.ids(None).await, [id]);
        thread.destroy().await;
    }
}

async fn an_erasure_of_the_owner_leaves_no_effects(room: Room) {
    let current = owned(&room, "ann").await;
    let archived = owned(&room, "ann").await;
    let restored = owned(&room, "ann").await;
    let mut effects = Vec::new();
    for thread in [&current, &archived, &restored] {
        let begun = begin_each(room.effects_of(thread)).await;
        effects.push(begun.running);
    }
    archived.destroy().await;
    restored.destroy().await;
    let back = room.backend.restore(&restored.id, None, &restored.policy);
    back.await.unwrap().unwrap();
    let moved = rotate(&room, &current).await;

    erase(&room, "ann").await;

    let threads = [&moved, &archived, &restored];
    for (thread, granted) in threads.into_iter().zip(&effects) {
        let ledger = room.effects_of(thread);
        assert_eq!(ledger.get("done").await, None);
        let late = ledger.settle(granted, result("1")).await;
        assert_eq!(late, Err(NOT_FOUND));
        let back = room.backend.restore(&thread.id, None, &thread.policy).await;
        assert_eq!(back.unwrap(), None);
    }
    room.advance(ThreadPolicy::THREAD.tombstone);
    for thread in [&current, &moved, &archived, &restored] {
        give(thread, "bob").await;
        let ledger = room.effects_of(thread);
        assert!(ledger.ids(None).await.is_empty());
        let turn = ledger.take().await.turn;
        assert_eq!((turn.number, turn.in_doubt), (1, 0));
    }
}

async fn a_new_life_after_an_expiry_knows_no_effects(room: Room) {
    for is_reaped in [true, false] {
        let thread = living(&room).await;
        let ledger = room.effects_of(&thread);
        let old = ledger.take().await;
        let granted = old.grant("a").await;
        old.run("b", result("1")).await;
        room.advance(ThreadPolicy::THREAD.ttl);
        if is_reaped {
            room.reap().await;
        }
        assert_eq!(ledger.get("b").await, None);
        let late = ledger.settle(&granted, result("1")).await;
        assert_eq!(late, Err(NOT_FOUND));

        let written = thread
            .merge_with_tombstone_rule(Tombstone::Ignored, &[set("k", "2")])
            .await;

        assert_eq!(written.unwrap().stamp.version, 1);
        assert!(ledger.ids(None).await.is_empty());
        let late = ledger.settle(&granted, result("1")).await;
        assert_eq!(late, Err(NOT_FOUND));
        let late = old.try_begin(&call("a")).await;
        assert_eq!(late, Err(Refusal::TurnLost));
        let new = ledger.take().await;
        assert_eq!((new.turn.number, new.turn.in_doubt), (1, 0));
        let again = new.grant("a").await;
        assert_ne!(again.key, granted.key);
        let late = ledger.settle(&granted, result("1")).await;
        assert_eq!(late, Err(lost(1)));
        new.release().await;
        assert_eq!(ledger.take().await.turn.in_doubt, 1);
    }
}

async fn restoring_a_checkpoint_undoes_no_effect(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    let doubt = first.grant("doubt").await;
    room.advance(TURN_TTL);
    let holder = ledger.take().await;
    let free = Conditions::default();
    let saved = room.backend.save_checkpoint(&thread.id, None, &free).await;
    let number = saved.unwrap().head.number;
    let running = holder.grant("running").await;
    holder.run("done", result("1")).await;
    let ids = ["doubt", "running", "done"];
    let before = (found(ledger, &ids).await, turn_state(&room, &thread).await);

    let write = thread.blank();
    let restored = room
        .backend
        .restore_checkpoint(&thread.id, number, &write)
        .await;

    restored.unwrap();
    let after = (found(ledger, &ids).await, turn_state(&room, &thread).await);
    assert_eq!(after, before);
    assert_eq!(holder.renew().await.unwrap().in_doubt, 1);
    for granted in [&doubt, &running] {
        let settled = ledger.settle(granted, result("1")).await.unwrap();
        assert!(!settled.repeated);
    }
}

super::over_every_store! {
    effects_and_fences_move_with_a_rotated_thread,
    a_rotation_leaves_no_effects_under_the_old_id,
    a_fork_copies_effects_without_their_fences,
    the_turns_of_a_fork_settle_and_retry_copied_effects,
    the_first_turn_of_a_fork_counts_the_copied_effects_in_doubt,
    a_fork_of_a_fork_copies_the_effects_of_both,
    a_fork_without_the_history_has_no_effects,
    an_image_has_the_effects_and_the_numbers_of_the_turns,
    an_imported_thread_continues_the_turns_and_has_no_fences,
    a_replacing_import_replaces_the_effects,
    effects_are_archived_and_restored_with_their_thread,
    a_thread_can_be_restored_with_its_effects_again,
    each_life_is_restored_with_its_own_effects,
    an_erasure_of_the_owner_leaves_no_effects,
    a_new_life_after_an_expiry_knows_no_effects,
    restoring_a_checkpoint_undoes_no_effect,
}

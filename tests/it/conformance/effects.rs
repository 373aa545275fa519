//! Effects: records of tool calls. The ledger of a thread grants each attempt once, and keeps its result.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use threadkeep_domain::effects::{
    BeginEffect, Effect, EffectId, EffectRefusal, EffectState, Fence, InputHash, Outcome, RunKey,
    SettleEffect, Settled, ToolName,
};
use threadkeep_domain::scope::Appended;
use threadkeep_domain::{
    Access, Answer, Conditions, IdempotencyKey, Operation, Refusal, Release, TakeTurn, ThreadId,
    TurnGranted, TurnToken, Write, Written,
};
use threadkeep_store::Backend;

use super::room::{Room, Subject, in_parallel, increment, json, numbered_key, push, refused, set};
use super::scope_room::item;
use super::turns::{exclusive_turn, living, take};

/// How long a turn of a [`Holder`] lasts: longer than a case takes.
pub(super) const TURN_TTL: Duration = Duration::from_secs(600);
const CALLERS: usize = 16;

pub(super) const NOT_FOUND: Refusal = of_effect(EffectRefusal::NotFound);
pub(super) const TOO_MANY: Refusal = of_effect(EffectRefusal::TooMany);
const REUSED: Refusal = of_effect(EffectRefusal::Reused);

const fn of_effect(refusal: EffectRefusal) -> Refusal {
    Refusal::Effect {
        refusal,
        operation: None,
    }
}

pub(super) const fn lost(attempt: u32) -> Refusal {
    of_effect(EffectRefusal::Lost { attempt })
}

const fn settled_otherwise(attempt: u32) -> Refusal {
    of_effect(EffectRefusal::Settled { attempt })
}

const fn not_held(number: u32) -> Refusal {
    Refusal::TurnNotHeld {
        number,
        operation: None,
    }
}

/// The effects of a thread under test.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ledger<'a> {
    room: &'a Room,
    thread: &'a Subject,
}

/// A process with the token of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holder<'a> {
    ledger: Ledger<'a>,
    pub(super) turn: TurnGranted,
}

/// A request to begin an effect.
#[derive(Debug, Clone)]
pub(super) struct Call {
    id: EffectId,
    tool: ToolName,
    hash: InputHash,
    idempotent: bool,
    retry: Option<u32>,
    idempotency: Option<IdempotencyKey>,
}

pub(super) fn call(id: &str) -> Call {
    Call {
        id: id.parse().unwrap(),
        tool: "send_mail".parse().unwrap(),
        hash: InputHash::of(None),
        idempotent: false,
        retry: None,
        idempotency: None,
    }
}

pub(super) fn result(value: &str) -> Outcome {
    Outcome::Result(json(value))
}

pub(super) fn error(value: &str) -> Outcome {
    Outcome::Error(json(value))
}

/// Returns a granted effect as other callers see it.
pub(super) fn seen(granted: &Effect, state: EffectState, outcome: Option<Outcome>) -> Effect {
    Effect {
        state,
        outcome,
        fence: None,
        ..granted.clone()
    }
}

fn by_fence(effect: &Effect, outcome: Outcome) -> SettleEffect {
    SettleEffect {
        id: effect.id.clone(),
        fence: effect.fence,
        outcome,
    }
}

fn without_fence(id: &str, outcome: Outcome) -> SettleEffect {
    SettleEffect {
        id: id.parse().unwrap(),
        fence: None,
        outcome,
    }
}

impl Room {
    pub(super) fn effects_of<'a>(&'a self, thread: &'a Subject) -> Ledger<'a> {
        Ledger { room: self, thread }
    }
}

impl Call {
    fn of(self, tool: &str, hash: &str) -> Self {
        Self {
            tool: tool.parse().unwrap(),
            hash: hash.parse().unwrap(),
            ..self
        }
    }

    pub(super) fn idempotent(self) -> Self {
        Self {
            idempotent: true,
            ..self
        }
    }

    pub(super) fn retry(self, attempt: u32) -> Self {
        Self {
            retry: Some(attempt),
            ..self
        }
    }

    /// Adds the idempotency key with this number.
    pub(super) fn keyed(self, number: u64) -> Self {
        Self {
            idempotency: Some(numbered_key(number)),
            ..self
        }
    }

    async fn begin(
        &self,
        backend: &dyn Backend,
        thread: &ThreadId,
        access: Access,
        turn: Option<TurnToken>,
    ) -> Result<Effect, Refusal> {
        let begin = BeginEffect {
            id: &self.id,
            tool: &self.tool,
            hash: &self.hash,
            idempotent: self.idempotent,
            retry: self.retry,
            turn,
            idempotency: self.idempotency,
            fence: Fence::random(),
            key: RunKey::random(),
        };
        refused(backend.begin_effect(thread, access, &begin).await)
    }
}

impl<'a> Ledger<'a> {
    /// Takes a turn, which must be free.
    pub(super) async fn take(self) -> Holder<'a> {
        let ask = TakeTurn {
            token: TurnToken::random(),
            ttl: TURN_TTL,
            exclusive: false,
            waits: false,
            idempotency: None,
        };
        let turn = take(self.room, self.thread, ask).await;
        self.holder(turn.unwrap())
    }

    pub(super) fn holder(self, turn: TurnGranted) -> Holder<'a> {
        Holder { ledger: self, turn }
    }

    /// Settles an effect with the fence in `effect`.
    pub(super) async fn settle(
        self,
        effect: &Effect,
        outcome: Outcome,
    ) -> Result<Settled, Refusal> {
        self.settle_by(&by_fence(effect, outcome), None).await
    }

    async fn settle_by(
        self,
        settle: &SettleEffect,
        turn: Option<TurnToken>,
    ) -> Result<Settled, Refusal> {
        let (backend, id) = (&self.room.backend, &self.thread.id);
        refused(backend.settle_effect(id, Access::All, settle, turn).await)
    }

    async fn merge(
        self,
        operations: &[Operation],
        turn: Option<TurnToken>,
    ) -> Result<Written, Refusal> {
        let write = Write {
            operations,
            conditions: Conditions {
                turn,
                ..Conditions::default()
            },
            ..self.thread.blank()
        };
        self.thread.write(&write).await
    }

    pub(super) async fn get(self, id: &str) -> Option<Effect> {
        let (backend, id) = (&self.room.backend, id.parse().unwrap());
        let found = backend.get_effect(&self.thread.id, Access::All, &id).await;
        found.unwrap()
    }

    pub(super) async fn state(self, id: &str) -> Option<EffectState> {
        self.get(id).await.map(|effect| effect.state)
    }

    pub(super) async fn list(
        self,
        state: Option<EffectState>,
        position: Option<u64>,
        limit: usize,
    ) -> Vec<Effect> {
        let (backend, id) = (&self.room.backend, &self.thread.id);
        let found = backend.list_effects(id, Access::All, state, position, limit);
        found.await.unwrap()
    }

    /// Returns the ids of all effects in a state, newest first.
    pub(super) async fn ids(self, state: Option<EffectState>) -> Vec<String> {
        let listed = self.list(state, None, 10_000).await;
        listed.iter().map(|effect| effect.id.to_string()).collect()
    }
}

impl Holder<'_> {
    pub(super) async fn try_begin(&self, call: &Call) -> Result<Effect, Refusal> {
        let Ledger { room, thread } = self.ledger;
        let turn = Some(self.turn.token);
        call.begin(&*room.backend, &thread.id, Access::All, turn)
            .await
    }

    pub(super) async fn begin(&self, call: &Call) -> Effect {
        self.try_begin(call).await.unwrap()
    }

    /// Begins a new effect.
    pub(super) async fn grant(&self, id: &str) -> Effect {
        let effect = self.begin(&call(id)).await;
        assert_eq!((effect.state, effect.attempt), (EffectState::Granted, 1));
        effect
    }

    /// Begins and settles a new effect. Returns it as it was granted.
    pub(super) async fn run(&self, id: &str, outcome: Outcome) -> Effect {
        let granted = self.grant(id).await;
        let settled = self.ledger.settle(&granted, outcome).await.unwrap();
        assert!(!settled.repeated);
        granted
    }

    /// Settles an effect without a fence.
    pub(super) async fn settle(&self, id: &str, outcome: Outcome) -> Result<Settled, Refusal> {
        let settle = without_fence(id, outcome);
        self.ledger.settle_by(&settle, Some(self.turn.token)).await
    }

    pub(super) async fn renew(&self) -> Result<TurnGranted, Refusal> {
        let Ledger { room, thread } = self.ledger;
        let (backend, token) = (&room.backend, self.turn.token);
        refused(
            backend
                .renew_turn(&thread.id, Access::All, token, TURN_TTL)
                .await,
        )
    }

    pub(super) async fn release(&self) {
        self.release_as(Release::Complete).await;
    }

    pub(super) async fn release_as(&self, release: Release) {
        let Ledger { room, thread } = self.ledger;
        let ended = room
            .backend
            .end_turn(&thread.id, Access::All, self.turn.token, release);
        ended.await.unwrap();
    }
}

/// Returns the answer of each call about effects to a caller with `access`.
pub(super) async fn refusals(
    room: &Room,
    thread: &Subject,
    access: Access,
) -> Vec<Option<Refusal>> {
    let (backend, id, call) = (&room.backend, &thread.id, call("a"));
    let token = Some(TurnToken::random());
    let begun = call.begin(&**backend, id, access, token).await;
    let settle = without_fence("a", result("1"));
    let settled = backend.settle_effect(id, access, &settle, token).await;
    let found = backend.get_effect(id, access, &call.id).await;
    let listed = backend.list_effects(id, access, None, None, 10).await;
    vec![
        begun.err(),
        refused(settled).err(),
        refused(found).err(),
        refused(listed).err(),
    ]
}

async fn a_new_effect_is_granted_once(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let holder = ledger.take().await;
    let call = call("a");

    let granted = holder.begin(&call).await;
    let again = holder.begin(&call).await;
    let other = holder.grant("b").await;

    assert_eq!(granted.state, EffectState::Granted);
    assert_eq!((granted.attempt, granted.turn), (1, 1));
    assert_eq!(
        (&granted.id, &granted.tool, &granted.hash),
        (&call.id, &call.tool, &call.hash)
    );
    assert!(granted.fence.is_some() && granted.outcome.is_none());
    let running = seen(&granted, EffectState::Running, None);
    assert_eq!(again, running);
    assert_eq!(ledger.get("a").await, Some(running));
    assert_ne!(other.key, granted.key);
    assert_ne!(other.fence, granted.fence);
}

async fn a_running_effect_is_not_begun_again(room: Room) {
    let thread = living(&room).await;
    let holder = room.effects_of(&thread).take().await;
    let granted = holder.begin(&call("a").idempotent()).await;

    for call in [
        call("a"),
        call("a").retry(1),
        call("a").retry(2),
        call("a").idempotent(),
        call("a").idempotent().retry(1),
    ] {
        let running = seen(&granted, EffectState::Running, None);
        assert_eq!(holder.begin(&call).await, running, "{call:?}");
    }
}

async fn a_settled_effect_is_returned_with_its_outcome(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;

    for (id, outcome) in [("a", result(r#"{"n":1.0}"#)), ("b", error("\"no\""))] {
        let granted = first.grant(id).await;
        let settled = ledger.settle(&granted, outcome.clone()).await.unwrap();

        let expected = seen(&granted, outcome.state(), Some(outcome));
        assert_eq!(settled.effect, expected);
        assert!(!settled.repeated);
        assert_eq!(first.begin(&call(id)).await, expected);
        assert_eq!(first.begin(&call(id).idempotent()).await, expected);
        assert_eq!(ledger.get(id).await, Some(expected));
    }

    first.release().await;
    let second = ledger.take().await;
    for id in ["a", "b"] {
        let begun = second.begin(&call(id).idempotent()).await;
        assert_eq!(Some(begun), ledger.get(id).await);
    }
}

async fn a_failed_effect_runs_again_only_on_request(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let holder = ledger.take().await;
    let first = holder.run("a", error("1")).await;
    let failed = seen(&first, EffectState::Failed, Some(error("1")));
    for call in [call("a"), call("a").idempotent(), call("a").retry(2)] {
        assert_eq!(holder.begin(&call).await, failed, "{call:?}");
    }

    let second = holder.begin(&call("a").retry(1)).await;
    let again = holder.begin(&call("a").retry(1)).await;
    ledger.settle(&second, result("2")).await.unwrap();

    assert_eq!((second.state, second.attempt), (EffectState::Granted, 2));
    assert_eq!(
        (second.key, second.position, &second.outcome),
        (first.key, first.position, &None)
    );
    assert_ne!(second.fence, first.fence);
    assert_eq!(again, seen(&second, EffectState::Running, None));
    let done = seen(&second, EffectState::Done, Some(result("2")));
    for attempt in [1, 2] {
        assert_eq!(holder.begin(&call("a").retry(attempt)).await, done);
    }
}

async fn an_effect_of_an_earlier_turn_is_in_doubt_until_it_is_retried(room: Room) {
    for is_released in [true, false] {
        let thread = living(&room).await;
        let ledger = room.effects_of(&thread);
        let first = ledger.take().await;
        let granted = first.grant("a").await;
        if is_released {
            first.release().await;
        } else {
            room.advance(TURN_TTL);
        }
        let second = ledger.take().await;

        let doubt = seen(&granted, EffectState::InDoubt, None);
        for call in [call("a"), call("a"), call("a").retry(2)] {
            assert_eq!(second.begin(&call).await, doubt, "{call:?}");
        }
        assert_eq!(ledger.get("a").await, Some(doubt));
        let next = second.begin(&call("a").retry(1)).await;
        let again = second.begin(&call("a").retry(1)).await;

        assert_eq!(next.state, EffectState::Granted);
        assert_eq!(
            (next.attempt, next.turn, next.key, next.position),
            (2, 2, granted.key, granted.position)
        );
        assert_ne!(next.fence, granted.fence);
        let moved = if is_released {
            Duration::ZERO
        } else {
            TURN_TTL
        };
        assert!(next.begun_ms >= granted.begun_ms + moved.as_millis() as u64);
        assert_eq!(again, seen(&next, EffectState::Running, None));
    }
}

async fn an_expired_turn_leaves_its_effects_running_and_a_released_turn_in_doubt(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let holder = ledger.take().await;
    holder.grant("a").await;

    room.advance(TURN_TTL);
    let after_expiry = ledger.state("a").await;
    holder.renew().await.unwrap();
    let after_renewal = holder.begin(&call("a")).await.state;
    holder.release().await;
    let after_release = ledger.state("a").await;

    assert_eq!(after_expiry, Some(EffectState::Running));
    assert_eq!(after_renewal, EffectState::Running);
    assert_eq!(after_release, Some(EffectState::InDoubt));
}

async fn an_idempotent_effect_in_doubt_begins_its_next_attempt(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    let granted = first.begin(&call("a").idempotent()).await;
    first.release().await;
    let second = ledger.take().await;

    let next = second.begin(&call("a").idempotent()).await;
    let again = second.begin(&call("a").idempotent()).await;
    second.release().await;
    let third = ledger.take().await.begin(&call("a")).await;

    assert_eq!((granted.state, granted.attempt), (EffectState::Granted, 1));
    assert_eq!((next.state, next.attempt), (EffectState::Granted, 2));
    assert_eq!(next.key, granted.key);
    assert_eq!(again, seen(&next, EffectState::Running, None));
    assert_eq!(third, seen(&next, EffectState::InDoubt, None));
}

async fn a_repeated_begin_gets_the_same_grant_while_the_attempt_runs(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let holder = ledger.take().await;
    let granted = holder.begin(&call("a").keyed(1)).await;

    assert_eq!(holder.begin(&call("a").keyed(1)).await, granted);
    let running = seen(&granted, EffectState::Running, None);
    for call in [call("a"), call("a").keyed(2)] {
        assert_eq!(holder.begin(&call).await, running);
    }
    assert_eq!(holder.begin(&call("a").keyed(1)).await, granted);
    ledger.settle(&granted, error("1")).await.unwrap();
    let failed = seen(&granted, EffectState::Failed, Some(error("1")));
    assert_eq!(holder.begin(&call("a").keyed(1)).await, failed);

    let retry = call("a").retry(1).keyed(3);
    let second = holder.begin(&retry).await;
    assert_eq!((second.state, second.attempt), (EffectState::Granted, 2));
    assert_eq!(holder.begin(&retry).await, second);
    // the key of the first attempt is not that of the second
    let running = seen(&second, EffectState::Running, None);
    assert_eq!(holder.begin(&call("a").keyed(1)).await, running);
    ledger.settle(&second, result("2")).await.unwrap();
    let done = seen(&second, EffectState::Done, Some(result("2")));
    assert_eq!(holder.begin(&retry).await, done);
}

async fn a_repeated_begin_gets_the_same_grant_only_in_the_same_turn(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    let granted = first.begin(&call("a").keyed(1)).await;
    room.advance(TURN_TTL);
    first.renew().await.unwrap();
    assert_eq!(first.begin(&call("a").keyed(1)).await, granted);

    first.release().await;
    let second = ledger.take().await;

    let doubt = seen(&granted, EffectState::InDoubt, None);
    assert_eq!(second.begin(&call("a").keyed(1)).await, doubt);
}

async fn only_the_holder_of_the_turn_begins_effects(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    first.grant("known").await;
    let calls = [call("known"), call("new")];
    let begin = async |turn: Option<TurnToken>| {
        let (backend, id) = (&*room.backend, &thread.id);
        let [known, new] = &calls;
        let known = known.begin(backend, id, Access::All, turn).await;
        let new = new.begin(backend, id, Access::All, turn).await;
        assert_eq!(known, new);
        known.unwrap_err()
    };

    assert_eq!(begin(None).await, Refusal::TurnLost);
    assert_eq!(begin(Some(TurnToken::random())).await, Refusal::TurnLost);
    room.advance(TURN_TTL);
    let expired = begin(Some(first.turn.token)).await;
    assert_eq!(expired, not_held(1));
    let second = ledger.take().await;
    assert_eq!(begin(Some(first.turn.token)).await, Refusal::TurnLost);
    second.release().await;
    let released = begin(Some(second.turn.token)).await;
    assert_eq!(released, not_held(2));
    assert_eq!(begin(Some(first.turn.token)).await, Refusal::TurnLost);
    assert_eq!(ledger.ids(None).await, ["known"]);

    let absent = room.subject();
    let without_thread = room.effects_of(&absent).holder(first.turn);
    let begun = without_thread.try_begin(&call("a")).await;
    assert_eq!(begun, Err(Refusal::TurnLost));
    assert!(!absent.exists().await);
}

async fn a_late_result_ends_the_doubt(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    let effects = [
        first.grant("a").await,
        first.grant("b").await,
        first.grant("c").await,
        first.grant("d").await,
    ];
    let settle = async |number: usize| {
        let granted = &effects[number];
        let settled = ledger.settle(granted, result("1")).await.unwrap();
        let done = seen(granted, EffectState::Done, Some(result("1")));
        assert_eq!((&settled.effect, settled.repeated), (&done, false));
        done
    };

    room.advance(TURN_TTL);
    settle(0).await;
    let second = ledger.take().await;
    let done = settle(1).await;
    assert_eq!(second.begin(&call("b")).await, done);
    second.release().await;
    settle(2).await;
    // with a fence, the token is not checked
    let late = by_fence(&effects[3], result("1"));
    let token = Some(TurnToken::random());
    assert!(!ledger.settle_by(&late, token).await.unwrap().repeated);

    assert_eq!(ledger.take().await.turn.in_doubt, 0);
}

async fn the_fence_of_an_earlier_attempt_settles_nothing(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let turn = ledger.take().await;
    let first = turn.grant("a").await;
    turn.release().await;
    let turn = ledger.take().await;

    let second = turn.begin(&call("a").retry(1)).await;
    let late = ledger.settle(&first, error("1")).await;
    let while_running = ledger.get("a").await;
    ledger.settle(&second, error("1")).await.unwrap();
    let repeated = ledger.settle(&first, error("1")).await;
    let third = turn.begin(&call("a").retry(2)).await;
    let later = ledger.settle(&second, error("1")).await;

    assert_eq!(late, Err(lost(2)));
    let running = seen(&second, EffectState::Running, None);
    assert_eq!(while_running, Some(running));
    assert_eq!(repeated, Err(lost(2)));
    assert_eq!(later, Err(lost(3)));
    assert_eq!(third.attempt, 3);
    let stranger = Effect {
        fence: Some(Fence::random()),
        ..third.clone()
    };
    assert_eq!(ledger.settle(&stranger, result("1")).await, Err(lost(3)));
    ledger.settle(&third, result("1")).await.unwrap();
    assert_eq!(ledger.settle(&stranger, result("1")).await, Err(lost(3)));
}

async fn without_a_fence_the_holder_settles_only_effects_in_doubt(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    let granted = first.grant("a").await;
    first.grant("b").await;
    first.run("c", result("1")).await;
    assert_eq!(first.settle("a", result("1")).await, Err(lost(1)));
    assert_eq!(ledger.state("a").await, Some(EffectState::Running));
    room.advance(TURN_TTL);
    let expired = first.settle("a", result("1")).await;
    assert_eq!(expired, Err(not_held(1)));

    let second = ledger.take().await;
    let late = first.settle("a", result("1")).await;
    let anonymous = without_fence("a", result("1"));
    let anonymous = ledger.settle_by(&anonymous, None).await;
    let unknown = second.settle("unknown", result("1")).await;
    let settled = second.settle("a", result("1")).await.unwrap();
    let again = second.settle("a", result("1")).await.unwrap();
    let other = second.settle("a", result("2")).await;

    assert_eq!(late, Err(Refusal::TurnLost));
    assert_eq!(anonymous, Err(Refusal::TurnLost));
    assert_eq!(unknown, Err(NOT_FOUND));
    let done = seen(&granted, EffectState::Done, Some(result("1")));
    assert_eq!((&settled.effect, settled.repeated), (&done, false));
    assert_eq!((&again.effect, again.repeated), (&done, true));
    assert_eq!(other, Err(settled_otherwise(1)));
    assert!(second.settle("c", result("1")).await.unwrap().repeated);
    second.begin(&call("b").retry(1)).await;
    assert_eq!(second.settle("b", result("1")).await, Err(lost(2)));
    second.release().await;
    let released = second.settle("b", result("1")).await;
    assert_eq!(released, Err(not_held(2)));
    assert_eq!(ledger.state("b").await, Some(EffectState::InDoubt));
}

async fn settling_again_with_the_same_value_changes_nothing(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let holder = ledger.take().await;
    let value = r#"{"n":[1.0]}"#;

    for (id, outcome, opposite) in [
        ("a", result(value), error(value)),
        ("b", error(value), result(value)),
    ] {
        let spaced = r#"{ "n" : [1.0] }"#;
        let spaced = if id == "a" {
            result(spaced)
        } else {
            error(spaced)
        };
        let granted = holder.run(id, spaced).await;

        let again = ledger.settle(&granted, outcome.clone()).await.unwrap();

        let settled = seen(&granted, outcome.state(), Some(outcome));
        assert_eq!((&again.effect, again.repeated), (&settled, true));
        let stored = again.effect.outcome.unwrap();
        assert_eq!(stored.value().as_str(), value);
        for other in [opposite, result("null"), error(r#"{"n":[1]}"#)] {
            let refused = ledger.settle(&granted, other).await;
            assert_eq!(refused, Err(settled_otherwise(1)));
        }
        assert_eq!(ledger.get(id).await, Some(settled));
    }
}

async fn an_id_belongs_to_one_tool_and_one_hash(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    let granted = first.begin(&call("a").of("ab", "c")).await;
    let assert_reused = async |holder: &Holder<'_>| {
        for (tool, hash) in [("ab", "d"), ("x", "c"), ("a", "bc"), ("abc", "c")] {
            let other = call("a").of(tool, hash);
            for call in [other.clone(), other.clone().idempotent(), other.retry(1)] {
                assert_eq!(holder.try_begin(&call).await, Err(REUSED), "{call:?}");
            }
        }
    };

    assert_reused(&first).await;
    let running = seen(&granted, EffectState::Running, None);
    assert_eq!(ledger.get("a").await, Some(running));
    first.release().await;
    let second = ledger.take().await;
    assert_reused(&second).await;
    ledger.settle(&granted, error("1")).await.unwrap();
    assert_reused(&second).await;

    let next = second.begin(&call("a").of("ab", "c").retry(1)).await;
    assert_eq!((next.state, next.attempt), (EffectState::Granted, 2));
}

async fn a_retry_of_an_unknown_effect_begins_nothing(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let holder = ledger.take().await;

    let begun = holder.try_begin(&call("a").retry(1)).await;
    holder.grant("b").await;
    let beside = holder.try_begin(&call("a").retry(1).idempotent()).await;

    assert_eq!((begun, beside), (Err(NOT_FOUND), Err(NOT_FOUND)));
    assert_eq!(ledger.ids(None).await, ["b"]);
    assert_eq!(ledger.get("a").await, None);
}

fn settle(effect: &Effect, outcome: Outcome) -> Operation {
    Operation::Settle(by_fence(effect, outcome))
}

fn settle_doubt(id: &str, outcome: Outcome) -> Operation {
    Operation::Settle(without_fence(id, outcome))
}

fn settled(state: EffectState, repeated: bool) -> Answer {
    Answer::Settled { state, repeated }
}

fn in_operation(refusal: EffectRefusal, operation: usize) -> Refusal {
    Refusal::from(refusal).in_operation(operation)
}

async fn a_merge_settles_effects_in_one_step_with_other_operations(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let holder = ledger.take().await;
    let (a, b) = (holder.grant("a").await, holder.grant("b").await);
    let version = thread.stamp().await.version;

    let operations = [
        set("k", "2"),
        settle(&a, result("1.0")),
        Operation::Append(item("m", "1")),
        settle(&b, error("\"e\"")),
        increment("n", 3),
    ];
    let written = ledger.merge(&operations, Some(holder.turn.token)).await;

    let written = written.unwrap();
    let appended = Appended {
        seq: 1,
        repeated: false,
    };
    assert_eq!(
        written.answers,
        [
            Answer::Done,
            settled(EffectState::Done, false),
            Answer::Appended("m".parse().unwrap(), appended),
            settled(EffectState::Failed, false),
            Answer::Value(3),
        ]
    );
    assert_eq!(written.stamp.version, version + 1);
    let state = thread.state().await.unwrap();
    assert_eq!(state, r#"{"k":2,"list":[],"n":3}"#);
    assert_eq!(room.scope_of(&thread).items().await.len(), 1);
    let [done, failed] = [ledger.get("a").await, ledger.get("b").await];
    assert_eq!(done, Some(seen(&a, EffectState::Done, Some(result("1.0")))));
    assert_eq!(
        failed,
        Some(seen(&b, EffectState::Failed, Some(error("\"e\""))))
    );
}

async fn a_merge_that_only_settles_changes_the_version(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let holder = ledger.take().await;
    let granted = holder.grant("a").await;
    let before = thread.stamp().await.version;

    let first = ledger.merge(&[settle(&granted, result("1"))], None).await;
    let again = ledger.merge(&[settle(&granted, result("1"))], None).await;

    let (first, again) = (first.unwrap(), again.unwrap());
    assert_eq!(first.answers, [settled(EffectState::Done, false)]);
    assert_eq!(again.answers, [settled(EffectState::Done, true)]);
    let versions = [first.stamp.version, again.stamp.version];
    assert_eq!(versions, [before + 1, before + 2]);
}

async fn a_merge_may_settle_an_effect_twice_with_the_same_value(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let holder = ledger.take().await;
    let (a, b) = (holder.grant("a").await, holder.grant("b").await);
    let one = result("1");

    let twice = [settle(&a, one.clone()), settle(&a, one.clone())];
    let twice = ledger.merge(&twice, None).await.unwrap();
    let differing = [settle(&b, one.clone()), settle(&b, error("1"))];
    let differing = ledger.merge(&differing, None).await;

    assert_eq!(
        twice.answers,
        [
            settled(EffectState::Done, false),
            settled(EffectState::Done, true)
        ]
    );
    let refusal = EffectRefusal::Settled { attempt: 1 };
    assert_eq!(differing, Err(in_operation(refusal, 1)));
    assert_eq!(ledger.state("b").await, Some(EffectState::Running));
    // the effect that was settled twice counts once
    assert_eq!(holder.renew().await.unwrap().in_doubt, 0);
    holder.release().await;
    assert_eq!(ledger.take().await.turn.in_doubt, 1);
}

async fn a_refused_merge_settles_nothing(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let holder = ledger.take().await;
    let (a, b) = (holder.grant("a").await, holder.grant("b").await);
    let stranger = Effect {
        fence: a.fence,
        ..b.clone()
    };
    let append = |value| Operation::Append(item("m", value));
    ledger.merge(&[append("1")], None).await.unwrap();
    let scope = room.scope_of(&thread);
    let contents = async || {
        let effects = [ledger.get("a").await, ledger.get("b").await];
        let thread = (thread.state().await, thread.stamp().await);
        (thread, scope.whole().await, effects)
    };
    let before = contents().await;
    let settle_a = || settle(&a, result("1"));

    for (operations, expected) in [
        (
            vec![set("k", "2"), settle_a(), settle_doubt("c", result("1"))],
            in_operation(EffectRefusal::NotFound, 2),
        ),
        (
            vec![
                settle_a(),
                append("1"),
                set("k", "2"),
                settle(&stranger, result("1")),
            ],
            in_operation(EffectRefusal::Lost { attempt: 1 }, 3),
        ),
        (
            vec![settle_a(), set("k", "2"), settle(&a, result("2"))],
            in_operation(EffectRefusal::Settled { attempt: 1 }, 2),
        ),
        (
            vec![settle_a(), settle_doubt("b", result("1"))],
            in_operation(EffectRefusal::Lost { attempt: 1 }, 1),
        ),
        (
            vec![settle_a(), append("1"), push("k", "1")],
            Refusal::NotAnArray { operation: 2 },
        ),
        (
            vec![settle_a(), set("k", "2"), append("2")],
            Refusal::AppendReusesId { operation: 2 },
        ),
    ] {
        let refused = ledger.merge(&operations, Some(holder.turn.token)).await;
        assert_eq!(refused, Err(expected), "{operations:?}");
        assert_eq!(contents().await, before, "{operations:?}");
    }
}

async fn a_merge_settles_effects_only_with_a_valid_token(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    let (a, b) = (first.grant("a").await, first.grant("b").await);
    room.advance(TURN_TTL);
    let (old, one) = (Some(first.turn.token), result("1"));

    let doubt = ledger.merge(&[settle_doubt("a", one.clone())], old).await;
    assert_eq!(doubt, Err(not_held(1).in_operation(0)));
    // as for other writes, the token of an expired turn is valid until a later turn is granted
    ledger.merge(&[settle(&b, one.clone())], old).await.unwrap();
    let second = ledger.take().await;
    let late = ledger.merge(&[settle(&a, one.clone())], old).await;
    assert_eq!(late, Err(Refusal::TurnLost));
    let anonymous = ledger.merge(&[settle_doubt("a", one.clone())], None).await;
    assert_eq!(anonymous, Err(Refusal::TurnLost));
    assert_eq!(ledger.state("a").await, Some(EffectState::InDoubt));

    let token = Some(second.turn.token);
    let written = ledger.merge(&[settle_doubt("a", one.clone())], token).await;
    assert_eq!(
        written.unwrap().answers,
        [settled(EffectState::Done, false)]
    );
    let done = seen(&a, EffectState::Done, Some(one));
    assert_eq!(ledger.get("a").await, Some(done));
}

async fn an_exclusive_turn_blocks_merges_and_no_late_results(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;
    let (a, b) = (first.grant("a").await, first.grant("b").await);
    room.advance(TURN_TTL);
    let exclusive = take(&room, &thread, exclusive_turn()).await.unwrap();

    let merged = ledger.merge(&[settle(&b, result("1"))], None).await;
    let settled = ledger.settle(&a, result("1")).await.unwrap();

    assert!(
        matches!(merged, Err(Refusal::TurnTaken { .. })),
        "{merged:?}"
    );
    assert_eq!(settled.effect.state, EffectState::Done);
    let operations = [settle(&b, result("1"))];
    let merged = ledger.merge(&operations, Some(exclusive.token)).await;
    merged.unwrap();
    assert_eq!(ledger.state("b").await, Some(EffectState::Done));
}

async fn a_merge_that_settles_an_unknown_effect_creates_no_thread(room: Room) {
    let thread = living(&room).await;
    let granted = room.effects_of(&thread).take().await.grant("a").await;
    let absent = room.subject();

    let operations = [set("k", "1"), settle(&granted, result("1"))];
    let refused = room.effects_of(&absent).merge(&operations, None).await;

    let expected = in_operation(EffectRefusal::NotFound, 1);
    assert_eq!(refused, Err(expected));
    assert!(!absent.exists().await);
}

async fn a_repeated_merge_gets_the_first_answers(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let granted = ledger.take().await.grant("a").await;
    let operations = [settle(&granted, error("1")), increment("n", 1)];

    let key = numbered_key(1);
    let first = thread.merge_once(key, &operations).await.unwrap();
    let again = thread.merge_once(key, &operations).await.unwrap();

    let answers = [settled(EffectState::Failed, false), Answer::Value(1)];
    assert_eq!(first.answers, answers);
    assert_eq!((again.answers, again.replayed), (answers.into(), true));
}

async fn clearing_the_state_keeps_the_effects(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let holder = ledger.take().await;
    let a = holder.grant("a").await;
    holder.grant("b").await;

    let operations = [Operation::Clear, settle(&a, result("1"))];
    ledger.merge(&operations, None).await.unwrap();

    assert_eq!(thread.state().await.as_deref(), Some("{}"));
    assert_eq!(ledger.state("a").await, Some(EffectState::Done));
    assert_eq!(holder.begin(&call("b")).await.state, EffectState::Running);
}

async fn effects_are_not_part_of_the_state_and_extend_the_lifetime(room: Room) {
    const LONG: Duration = Duration::from_secs(3_000);
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let (before, state) = (thread.stamp().await, thread.state().await);
    room.advance(LONG);

    let granted = ledger.take().await.grant("a").await;
    room.advance(LONG);
    ledger.settle(&granted, result("1")).await.unwrap();
    room.advance(LONG);
    assert_eq!(ledger.state("a").await, Some(EffectState::Done));
    room.advance(LONG);
    assert_eq!(ledger.ids(None).await, ["a"]);
    room.advance(LONG);

    assert_eq!(
        (thread.stamp().await, thread.state().await),
        (before, state)
    );
}

async fn grants_and_renewals_count_the_effects_in_doubt(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let in_doubt = async |holder: &Holder<'_>| holder.renew().await.unwrap().in_doubt;
    let first = ledger.take().await;
    assert_eq!(first.turn.in_doubt, 0);
    first.grant("a").await;
    first.grant("b").await;
    first.run("c", result("1")).await;
    assert_eq!(in_doubt(&first).await, 0);
    room.advance(TURN_TTL);
    assert_eq!(in_doubt(&first).await, 0);
    first.release().await;

    let second = ledger.take().await;
    assert_eq!(second.turn.in_doubt, 2);
    let late = second.grant("d").await;
    assert_eq!(in_doubt(&second).await, 2);
    second.begin(&call("a").retry(1)).await;
    assert_eq!(in_doubt(&second).await, 1);
    second.settle("b", result("1")).await.unwrap();
    assert_eq!(in_doubt(&second).await, 0);
    room.advance(TURN_TTL);

    let third = ledger.take().await;
    assert_eq!(third.turn.in_doubt, 2);
    ledger.settle(&late, result("1")).await.unwrap();
    assert_eq!(in_doubt(&third).await, 1);
    third.run("e", error("1")).await;
    third.begin(&call("e").retry(1)).await;
    assert_eq!(in_doubt(&third).await, 1);
    third.begin(&call("a").idempotent()).await;
    assert_eq!(in_doubt(&third).await, 0);
    third.release().await;
    assert_eq!(ledger.take().await.turn.in_doubt, 2);
}

async fn a_list_has_the_newest_effects_first_without_outcomes(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let absent = room.subject();
    assert!(ledger.ids(None).await.is_empty());
    assert!(room.effects_of(&absent).ids(None).await.is_empty());
    assert_eq!(room.effects_of(&absent).get("a").await, None);
    let first = ledger.take().await;
    for id in ["a", "b"] {
        first.grant(id).await;
    }
    first.run("c", result("1")).await;
    first.run("d", error("1")).await;
    first.run("e", error("1")).await;
    first.release().await;
    let second = ledger.take().await;
    second.grant("f").await;
    second.begin(&call("d").retry(1)).await;
    second.run("g", result("1")).await;

    // a further attempt does not move an effect
    assert_eq!(ledger.ids(None).await, ["g", "f", "e", "d", "c", "b", "a"]);
    for (state, ids) in [
        (EffectState::Running, &["f", "d"][..]),
        (EffectState::InDoubt, &["b", "a"][..]),
        (EffectState::Done, &["g", "c"][..]),
        (EffectState::Failed, &["e"][..]),
    ] {
        assert_eq!(ledger.ids(Some(state)).await, ids, "{state:?}");
    }
    for listed in ledger.list(None, None, 10).await {
        let found = ledger.get(listed.id.as_str()).await.unwrap();
        assert_eq!(listed, seen(&found, found.state, None));
    }
}

async fn a_list_continues_after_a_position(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let holder = ledger.take().await;
    for number in 0..8 {
        let granted = holder.grant(&format!("{number}")).await;
        if number % 2 == 0 {
            ledger.settle(&granted, result("1")).await.unwrap();
        }
    }

    let pages = async |state, limit| {
        let (mut pages, mut position) = (Vec::new(), None);
        loop {
            let page = ledger.list(state, position, limit).await;
            let Some(last) = page.last() else {
                return pages;
            };
            position = Some(last.position);
            let ids: String = page.iter().map(|effect| effect.id.as_str()).collect();
            pages.push(ids);
        }
    };

    assert_eq!(pages(None, 3).await, ["765", "432", "10"]);
    assert_eq!(pages(None, 4).await, ["7654", "3210"]);
    assert_eq!(pages(Some(EffectState::Done), 3).await, ["642", "0"]);
    assert_eq!(pages(Some(EffectState::Running), 1).await.concat(), "7531");
    assert!(pages(Some(EffectState::Failed), 3).await.is_empty());
}

/// Begins an effect from several callers at once.
async fn begin_concurrently(room: &Room, holder: &Holder<'_>, call: &Call) -> Vec<Effect> {
    let thread = holder.ledger.thread.id;
    let turn = Some(holder.turn.token);
    let callers = (0..CALLERS).map(|_| {
        let (backend, call) = (Arc::clone(&room.backend), call.clone());
        in_parallel(async move { call.begin(&*backend, &thread, Access::All, turn).await })
    });
    let begun = join_all(callers).await.into_iter();
    begun.map(|begun| begun.unwrap().unwrap()).collect()
}

/// Returns the granted effect. All other callers must have found it running.
fn only_grant(effects: &[Effect]) -> Effect {
    let (granted, others): (Vec<_>, Vec<_>) = effects
        .iter()
        .partition(|effect| effect.state == EffectState::Granted);
    assert_eq!(granted.len(), 1, "{effects:?}");
    for other in others {
        assert_eq!(*other, seen(granted[0], EffectState::Running, None));
    }
    granted[0].clone()
}

async fn one_of_several_concurrent_begins_is_granted(room: Room) {
    let thread = living(&room).await;
    let holder = room.effects_of(&thread).take().await;

    for id in ["a", "b", "c", "d", "e"] {
        let effects = begin_concurrently(&room, &holder, &call(id)).await;
        assert_eq!(only_grant(&effects).attempt, 1);
    }
}

async fn one_of_several_concurrent_retries_is_granted(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let first = ledger.take().await;

    for id in ["a", "b", "c", "d"] {
        first.run(id, error("1")).await;
        let retry = call(id).retry(1);
        let effects = begin_concurrently(&room, &first, &retry).await;
        assert_eq!(only_grant(&effects).attempt, 2);
    }
    first.release().await;
    let second = ledger.take().await;
    for call in [
        call("a").retry(2),
        call("b").retry(2),
        call("c").idempotent(),
        call("d").idempotent(),
    ] {
        let effects = begin_concurrently(&room, &second, &call).await;
        assert_eq!(only_grant(&effects).attempt, 3);
    }
}

async fn concurrent_repeats_of_one_request_get_the_same_grant(room: Room) {
    let thread = living(&room).await;
    let holder = room.effects_of(&thread).take().await;

    for number in 0..5 {
        let call = call(&number.to_string()).keyed(number);
        let effects = begin_concurrently(&room, &holder, &call).await;
        assert_eq!(effects[0].state, EffectState::Granted);
        assert!(effects.iter().all(|effect| *effect == effects[0]));
    }
}

async fn one_of_several_concurrent_results_is_recorded(room: Room) {
    let thread = living(&room).await;
    let ledger = room.effects_of(&thread);
    let granted = ledger.take().await.grant("a").await;

    let callers = (0..CALLERS).map(|number| {
        let (backend, id) = (Arc::clone(&room.backend), thread.id);
        let settle = by_fence(&granted, result(&number.to_string()));
        in_parallel(
            async move { refused(backend.settle_effect(&id, Access::All, &settle, None).await) },
        )
    });
    let answers = join_all(callers).await.into_iter();
    let (recorded, others): (Vec<_>, Vec<_>) = answers.map(Result::unwrap).partition(Result::is_ok);

    assert_eq!(recorded.len(), 1);
    let recorded = recorded[0].clone().unwrap();
    assert!(!recorded.repeated);
    assert!(
        others
            .iter()
            .all(|other| *other == Err(settled_otherwise(1)))
    );
    assert_eq!(ledger.get("a").await, Some(recorded.effect));
}

super::over_every_store_and_confirmed! {
    a_new_effect_is_granted_once,
    a_running_effect_is_not_begun_again,
    a_settled_effect_is_returned_with_its_outcome,
    a_failed_effect_runs_again_only_on_request,
    an_effect_of_an_earlier_turn_is_in_doubt_until_it_is_retried,
    an_expired_turn_leaves_its_effects_running_and_a_released_turn_in_doubt,
    an_idempotent_effect_in_doubt_begins_its_next_attempt,
    a_repeated_begin_gets_the_same_grant_while_the_attempt_runs,
    a_repeated_begin_gets_the_same_grant_only_in_the_same_turn,
    only_the_holder_of_the_turn_begins_effects,
    a_late_result_ends_the_doubt,
    the_fence_of_an_earlier_attempt_settles_nothing,
    without_a_fence_the_holder_settles_only_effects_in_doubt,
    settling_again_with_the_same_value_changes_nothing,
    an_id_belongs_to_one_tool_and_one_hash,
    a_retry_of_an_unknown_effect_begins_nothing,
    a_merge_settles_effects_in_one_step_with_other_operations,
    a_merge_that_only_settles_changes_the_version,
    a_merge_may_settle_an_effect_twice_with_the_same_value,
    a_refused_merge_settles_nothing,
    a_merge_settles_effects_only_with_a_valid_token,
    an_exclusive_turn_blocks_merges_and_no_late_results,
    a_merge_that_settles_an_unknown_effect_creates_no_thread,
    a_repeated_merge_gets_the_first_answers,
    clearing_the_state_keeps_the_effects,
    effects_are_not_part_of_the_state_and_extend_the_lifetime,
    grants_and_renewals_count_the_effects_in_doubt,
    a_list_has_the_newest_effects_first_without_outcomes,
    a_list_continues_after_a_position,
    one_of_several_concurrent_begins_is_granted,
    one_of_several_concurrent_retries_is_granted,
    concurrent_repeats_of_one_request_get_the_same_grant,
    one_of_several_concurrent_results_is_recorded,
}

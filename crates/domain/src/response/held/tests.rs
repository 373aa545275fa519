use super::*;
use crate::{Access, ThreadId};

const LEASE: Duration = Duration::from_secs(10);
const KEPT: Duration = Duration::from_secs(100);
const LIFE: Life = Life(7);

pub(in super::super) fn begin(
    scope: &ScopeId,
    token: TurnToken,
    floor: Floor,
) -> BeginResponse<'_> {
    BeginResponse {
        scope,
        access: Access::All,
        token,
        lease: LEASE,
        kept: KEPT,
        due: LEASE,
        floor,
        request: None,
        fingerprint: Fingerprint([1; 16]),
    }
}

pub(in super::super) fn driven(begin: &BeginResponse<'_>, now_ms: u64) -> HeldResponse {
    let life = begin.scope.thread().map(|_| LIFE);
    let mut held = HeldResponse::new(begin, &Bytes::from_static(b"request"), life);
    held.drive(begin, now_ms);
    held
}

pub(in super::super) fn end(answer: &Bytes) -> EndResponse<'_> {
    EndResponse {
        token: None,
        entries: 0,
        events: (0, &[]),
        answer,
        kept: 100 * KEPT,
        events_kept: KEPT,
    }
}

fn thread() -> ScopeId {
    ScopeId::Thread(ThreadId::random())
}

#[test]
fn a_driver_owns_a_response_until_its_lease_or_the_response_ends() {
    let (scope, token) = (thread(), TurnToken::random());
    let first = begin(&scope, token, Floor::None);
    let second = begin(&scope, TurnToken::random(), Floor::None);
    let different = BeginResponse {
        fingerprint: Fingerprint([2; 16]),
        ..second
    };
    let mut held = driven(&first, 1_000);

    let left = Duration::from_secs(4);
    assert_eq!(
        held.check_resume(&second, 7_000),
        Ok(Some(Begun::Running { left }))
    );
    assert_eq!(held.check_resume(&first, 7_000), Ok(None));
    assert_eq!(held.check_resume(&second, 11_000), Ok(None));
    assert_eq!(
        held.check_resume(&different, 11_000),
        Err(Refusal::IdempotencyKeyReused)
    );

    let answer = Bytes::from_static(b"answer");
    held.end(&end(&answer), true, KEPT, 2_000);
    assert_eq!(
        held.check_resume(&second, 3_000),
        Ok(Some(Begun::Ended(answer)))
    );
    assert_eq!(held.check_driver(Some(token)), Err(Refusal::TurnLost));
    assert_eq!(held.due_ms(), None);
}

#[test]
fn a_write_needs_the_driver_the_life_and_the_turn() {
    let (scope, token) = (thread(), TurnToken::random());
    let held = driven(&begin(&scope, token, Floor::Taken), 1_000);
    let mut turn = None;
    crate::threads::turn::grant_turn(&mut turn, ResponseId::MIN, token, 9_000);
    let check = |token, life, turn| held.check(&scope, token, Some((life, turn)), 2_000);

    assert_eq!(check(Some(token), LIFE, turn.as_deref()), Ok(()));
    assert_eq!(check(None, LIFE, None), Ok(()));
    let lost = Err(Refusal::TurnLost);
    assert_eq!(check(Some(token), LIFE, None), lost);
    assert_eq!(
        check(Some(TurnToken::random()), LIFE, turn.as_deref()),
        lost
    );
    assert_eq!(
        check(Some(token), Life(8), turn.as_deref()),
        Err(Refusal::Destroyed)
    );
    assert_eq!(
        held.check(&scope, None, None, 2_000),
        Err(Refusal::Destroyed)
    );
}

#[test]
fn entries_and_events_reject_gaps_and_skip_repeats() {
    let (scope, token) = (thread(), TurnToken::random());
    let mut held = driven(&begin(&scope, token, Floor::None), 0);
    let text = Bytes::from_static(b"text");
    let (events, stored) = ([text.clone(), text.clone()], Some(&text));
    let entry = |number, first| JournalEntry {
        token,
        number,
        entry: &text,
        events: (first, &events),
    };

    assert_eq!(held.stored_entry(&entry(2, 0)), Err(Refusal::Changed));
    assert_eq!(held.stored_entry(&entry(0, 0)), Err(Refusal::Changed));
    assert_eq!(held.stored_entry(&entry(1, 1)), Err(Refusal::Changed));
    assert_eq!(held.stored_entry(&entry(1, 0)), Ok(None));
    held.add_entry(&entry(1, 0), 0);
    assert_eq!(held.stored_entry(&entry(1, 9)), Ok(stored));

    // the first event is already stored
    held.append_events((1, &events), 50_000);
    assert_eq!(held.journal().next_event, 3);
    assert_eq!(
        held.ends_ms(),
        100_000,
        "later events do not count as writes"
    );
    let end = EndResponse {
        entries: 1,
        events: (2, &[]),
        ..end(&text)
    };
    assert_eq!(held.check_end(&end), Err(Refusal::Changed));
    assert_eq!(
        held.check_end(&EndResponse {
            events: (3, &[]),
            ..end
        }),
        Ok(())
    );
}

#[test]
fn an_answer_expires_while_an_erasure_can_still_find_it() {
    let (scope, token) = (thread(), TurnToken::random());
    let answer = Bytes::new();
    let ends_ms = |has_thread| {
        let mut held = driven(&begin(&scope, token, Floor::None), 0);
        let end = EndResponse {
            kept: 100 * DAY,
            ..end(&answer)
        };
        held.end(&end, has_thread, 3 * DAY, 0);
        assert_eq!(
            held.read_events(0, 1, 0).map(|read| read.has_ended),
            Some(true)
        );
        held.ends_ms()
    };

    assert_eq!(ends_ms(true), millis(3 * DAY));
    assert_eq!(ends_ms(false), millis(KEPT));
}

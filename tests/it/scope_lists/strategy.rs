use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use threadkeep_domain::scope::{HistoryLimit, KeyRule, Lifetime, ScopePolicy};

use super::{
    Bound, Expects, Kind, List, Op, PreconditionStep, Removes, Step, ThreadStep, WriteStep,
};

/// Only a few keys, so that steps often use the same key. A store might confuse some of the keys with internal names.
const KEYS: [&str; 9] = ["k", "l", "", "M", "T", "R", "kk", "x\n", "é\u{2028}"];
const TEXTS: [&str; 16] = [
    "",
    "0",
    "-0",
    "007",
    "-",
    "1.0",
    "999999999999999",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "a",
    ";s1",
    "\n",
    "\0",
    "😀",
];
const AMOUNTS: [i64; 8] = [
    0,
    1,
    -1,
    1_000_000_000_000_000,
    -9_007_199_254_740_993,
    i64::MAX,
    i64::MIN,
    4_611_686_018_427_387_904,
];
const IDS: [&str; 6] = ["a", "b", "c", "A", "R", "o1"];

/// All lifetimes are at least 5 s from any sum of pauses, so that a slow step cannot change the outcome.
pub(crate) fn list() -> impl Strategy<Value = List> {
    let kind = prop_oneof![Just(Kind::Thread), Just(Kind::Other)];
    let steps = vec(step(), 1..30);
    let seconds = |choice: &'static [u64]| select(choice).prop_map(Duration::from_secs);
    (
        kind,
        policy(),
        seconds(&[35, 95, 3_605]),
        seconds(&[0, 25, 65]),
        any::<bool>(),
        prop::bool::weighted(0.85),
        steps,
    )
        .prop_map(
            |(kind, policy, thread_ttl, tombstone, reads_everything, exists, mut steps)| {
                if exists {
                    steps.insert(0, creation(kind));
                }
                let policy = match kind {
                    Kind::Thread => ScopePolicy {
                        lifetime: Lifetime::Thread,
                        is_made: false,
                        ..policy
                    },
                    Kind::Other => policy,
                };
                List {
                    kind,
                    policy,
                    thread_ttl,
                    tombstone,
                    reads_everything,
                    steps,
                }
            },
        )
}

fn creation(kind: Kind) -> Step {
    match kind {
        Kind::Thread => Step::Thread(ThreadStep::Write),
        Kind::Other => Step::Write(WriteStep {
            makes: true,
            ..WriteStep::default()
        }),
    }
}

fn policy() -> impl Strategy<Value = ScopePolicy> {
    let lifetime = prop_oneof![
        1 => Just(Lifetime::Kept),
        1 => ttl().prop_map(Lifetime::Idle),
    ];
    let max_bytes = prop_oneof![
        2 => Just(8_388_608),
        2 => 100u64..700,
        1 => 60u64..140,
    ];
    (lifetime, any::<bool>(), max_bytes, any::<bool>()).prop_map(
        |(lifetime, is_made, max_bytes, drops_oldest)| ScopePolicy {
            keys: KeyRule::Free,
            lifetime,
            is_made,
            history: HistoryLimit {
                max_bytes,
                drops_oldest,
            },
        },
    )
}

fn ttl() -> impl Strategy<Value = Duration> {
    select(&[15, 35, 45, 95, 3_605][..]).prop_map(Duration::from_secs)
}

fn step() -> impl Strategy<Value = Step> {
    let values = || vec(key(), 0..4);
    let bound = prop_oneof![
        number().prop_map(Bound::After),
        number().prop_map(Bound::Before),
    ];
    let thread = prop_oneof![
        4 => Just(ThreadStep::Write),
        2 => Just(ThreadStep::Destroy),
        2 => Just(ThreadStep::Restore),
    ];
    prop_oneof![
        10 => op().prop_map(|op| Step::Write(WriteStep {
            operations: vec![op],
            ..WriteStep::default()
        })),
        6 => items().prop_map(|items| Step::Write(WriteStep {
            items,
            ..WriteStep::default()
        })),
        3 => removes().prop_map(|removes| Step::Write(WriteStep {
            removes: Some(removes),
            ..WriteStep::default()
        })),
        12 => write().prop_map(Step::Write),
        2 => Just(creation(Kind::Other)),
        3 => (values(), any::<bool>()).prop_map(|(values, all)| Step::Read { values, all }),
        3 => (bound, 0usize..5).prop_map(|(bound, limit)| Step::Page(bound, limit)),
        2 => option::weighted(0.3, precondition()).prop_map(Step::End),
        3 => any::<usize>().prop_map(Step::Again),
        4 => (1u64..8).prop_map(|tens| Step::Advance(Duration::from_secs(10 * tens))),
        4 => thread.prop_map(Step::Thread),
    ]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0u64..20, 1 => Just(u64::MAX)]
}

fn write() -> impl Strategy<Value = WriteStep> {
    let operations = prop_oneof![
        2 => Just(Vec::new()),
        3 => vec(op(), 1),
        3 => vec(op(), 2..9),
    ];
    let text = || select(&["", "=", "r", "R"][..]);
    let expects = prop_oneof![
        2 => Just(Expects::LastSeen),
        1 => text().prop_map(Expects::Text),
    ];
    let changes = (
        option::weighted(0.3, (0usize..4, option::weighted(0.5, precondition()))),
        option::weighted(0.2, (text(), option::weighted(0.5, expects))),
        option::weighted(0.2, removes()),
        prop_oneof![2 => Just(Vec::new()), 1 => items()],
    );
    (
        prop::bool::weighted(0.1),
        operations,
        changes,
        prop::bool::weighted(0.02),
        option::weighted(0.15, ttl()),
        option::weighted(0.15, precondition()),
        option::weighted(0.3, 0u8..3),
    )
        .prop_map(
            |(makes, operations, changes, seals, ttl, precondition, idempotency)| WriteStep {
                makes,
                operations,
                tasks: changes.0,
                record: changes.1,
                removes: changes.2,
                items: changes.3,
                seals,
                ttl,
                precondition,
                idempotency,
            },
        )
}

fn op() -> impl Strategy<Value = Op> {
    let set = (
        key(),
        value(),
        option::weighted(0.3, ttl()),
        prop::bool::weighted(0.3),
    );
    prop_oneof![
        8 => set.prop_map(|(key, value, ttl, if_absent)| Op::Set { key, value, ttl, if_absent }),
        3 => key().prop_map(Op::Delete),
        5 => (key(), select(&AMOUNTS[..])).prop_map(|(key, by)| Op::Increment(key, by)),
        1 => Just(Op::Clear),
        1 => (248usize..258).prop_map(Op::Many),
        1 => (0usize..30).prop_map(Op::Fill),
    ]
}

/// Generates keys. The first keys occur more often than the others.
fn key() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        3 => select(&KEYS[..3]),
        2 => select(&KEYS[..]),
    ]
}

fn value() -> impl Strategy<Value = String> {
    let large = select(&[32_738usize, 32_768][..]);
    prop_oneof![
        7 => select(&TEXTS[..]).prop_map(ToOwned::to_owned),
        1 => large.prop_map(|bytes| "x".repeat(bytes)),
    ]
}

fn items() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let value = prop_oneof![
        4 => select(&["1", "{}"][..]).prop_map(ToOwned::to_owned),
        1 => (1usize..300).prop_map(|digits| "7".repeat(digits)),
    ];
    vec((select(&IDS[..]), value), 1..5)
}

fn removes() -> impl Strategy<Value = Removes> {
    prop_oneof![
        1 => Just(Removes::All),
        2 => select(&IDS[..]).prop_map(Removes::Item),
        2 => (1usize..4).prop_map(Removes::Newest),
    ]
}

fn precondition() -> impl Strategy<Value = PreconditionStep> {
    prop_oneof![
        1 => Just(PreconditionStep::Exists),
        2 => (0u64..4).prop_map(PreconditionStep::Version),
        4 => (0usize..4).prop_map(PreconditionStep::Seen),
    ]
}

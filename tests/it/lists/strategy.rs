use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use threadkeep_domain::{Mismatch, Owner, Slice, ThreadPolicy};

use super::{
    Caller, CheckpointStep, CopyStep, Expects, List, Op, OwnerStep, PreconditionStep, ReadStep,
    Step, TombstoneCheck, WriteStep,
};

/// Only a few keys, so that steps often use the same key. A store might confuse some of the keys with internal names.
const KEYS: [&str; 12] = [
    "k",
    "l",
    "M",
    "D",
    "T",
    "c0:0",
    "\"k\":",
    "\\\"",
    "é\u{2028}",
    "k ",
    "",
    "a\n\u{1}\u{7f}",
];
const OBJECTS: [&str; 4] = [
    "{}",
    r#"{"a":1}"#,
    r#"{"a":1.0}"#,
    r#"{"":[{}],"a":"\ud83d"}"#,
];
const SCALARS: [&str; 14] = [
    "0",
    "-0",
    "1.0",
    "1e2",
    "7",
    "999999999999999",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "null",
    "\"[1,2]\"",
    "\"\\ud83d\\n\"",
    "true",
];
const AMOUNTS: [i64; 9] = [
    0,
    1,
    -1,
    1_000_000_000_000_000,
    -9_007_199_254_740_993,
    i64::MAX,
    i64::MIN,
    i64::MIN + 1,
    4_611_686_018_427_387_904,
];

const OWNERS: [&str; 2] = ["ann", "bob"];
/// Turn durations in seconds, at least 5 s from any sum of [`pause`]s, so that a slow step cannot change the outcome.
const TURN_SECONDS: [u64; 2] = [25, 65];

pub(crate) fn list() -> impl Strategy<Value = List> {
    (policy(), vec(step(), 1..24)).prop_map(|(policy, steps)| List { policy, steps })
}

/// All lifetimes are at least 5 s from any sum of [`pause`]s, so that a slow step cannot change the outcome.
fn policy() -> impl Strategy<Value = ThreadPolicy> {
    let max_bytes = prop_oneof![
        4 => Just(1_048_576),
        1 => 2u64..60,
        2 => 60u64..400,
        1 => 1_990u64..2_100,
        1 => 4_000u64..9_000,
    ];
    let max_keys = prop_oneof![3 => Just(10_000), 1 => 0u32..4];
    let max_metadata_bytes = prop_oneof![3 => Just(16_384), 1 => 2u64..20];
    let max_age = prop_oneof![
        3 => Just(None),
        1 => select(&[Some(45), Some(125)][..]),
    ];
    (
        max_bytes,
        max_keys,
        max_metadata_bytes,
        select(&[35, 95, 3_605][..]),
        max_age,
        select(&[0, 25, 65][..]),
    )
        .prop_map(
            |(max_bytes, max_keys, max_metadata_bytes, ttl, max_age, tombstone)| ThreadPolicy {
                max_bytes,
                max_keys,
                max_metadata_bytes,
                ttl: Duration::from_secs(ttl),
                max_age: max_age.map(Duration::from_secs),
                tombstone: Duration::from_secs(tombstone),
            },
        )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        14 => op().prop_map(|op| Step::Write(WriteStep::of(vec![op]))),
        14 => write().prop_map(Step::Write),
        2 => destroy(),
        2 => turn(),
        5 => (
            checkpoint(),
            option::weighted(0.1, precondition()),
            option::weighted(0.3, 0u8..3)
        ).prop_map(|(action, precondition, idempotency)| {
            Step::Checkpoint { action, precondition, idempotency }
        }),
        1 => Just(Step::Rotate),
        2 => (copy(), caller()).prop_map(|(copy, caller)| Step::Copy(copy, caller)),
        3 => any::<usize>().prop_map(Step::Again),
        5 => (read(), caller()).prop_map(|(read, caller)| Step::Read(read, caller)),
        3 => pause().prop_map(Step::Advance),
        1 => Just(Step::Watch),
        1 => Just(Step::Reap),
        1 => option::weighted(0.3, 0usize..6).prop_map(Step::Restore),
    ]
}

fn destroy() -> impl Strategy<Value = Step> {
    (
        option::weighted(0.3, precondition()),
        option::weighted(0.4, 0u8..3),
        caller(),
        turn_number(),
    )
        .prop_map(|(precondition, idempotency, caller, turn)| Step::Destroy {
            precondition,
            idempotency,
            caller,
            turn,
        })
}

fn turn() -> impl Strategy<Value = Step> {
    let ttl = || select(&TURN_SECONDS[..]).prop_map(Duration::from_secs);
    let take = (
        0u8..3,
        any::<bool>(),
        ttl(),
        option::weighted(0.3, 0u8..3),
        caller(),
    );
    prop_oneof![
        3 => take.prop_map(|(turn, exclusive, ttl, idempotency, caller)| Step::TakeTurn {
            turn,
            exclusive,
            ttl,
            idempotency,
            caller,
        }),
        1 => (0u8..3, ttl(), caller())
            .prop_map(|(turn, ttl, caller)| Step::RenewTurn { turn, ttl, caller }),
        2 => (0u8..3, caller()).prop_map(|(turn, caller)| Step::EndTurn { turn, caller }),
    ]
}

fn caller() -> impl Strategy<Value = Caller> {
    prop_oneof![
        12 => Just(Caller::BackEnd),
        1 => Just(Caller::Unnamed),
        2 => select(&OWNERS[..]).prop_map(Caller::Owner),
    ]
}

fn owner() -> impl Strategy<Value = OwnerStep> {
    let owner = || select(&OWNERS[..]).prop_map(|name| Owner::new(name).unwrap());
    prop_oneof![
        3 => owner().prop_map(OwnerStep::Bind),
        2 => owner().prop_map(OwnerStep::Set),
        1 => Just(OwnerStep::Clear),
    ]
}

fn turn_number() -> impl Strategy<Value = Option<u8>> {
    option::weighted(0.1, 0u8..3)
}

fn checkpoint() -> impl Strategy<Value = CheckpointStep> {
    prop_oneof![
        4 => Just(CheckpointStep::Save),
        1 => Just(CheckpointStep::List),
        2 => (1u32..4).prop_map(CheckpointStep::Get),
        3 => (1u32..4).prop_map(CheckpointStep::Restore),
        1 => (1u32..4).prop_map(CheckpointStep::Delete),
    ]
}

fn copy() -> impl Strategy<Value = CopyStep> {
    let fork = (
        option::weighted(0.3, 1u32..4),
        any::<[bool; 3]>(),
        option::weighted(0.3, select(&OBJECTS[..])),
        option::weighted(0.2, precondition()),
        turn_number(),
        any::<bool>(),
    );
    prop_oneof![
        3 => fork.prop_map(|(checkpoint, parts, metadata, precondition, turn, is_near)| {
            CopyStep::Fork { checkpoint, parts, metadata, precondition, turn, is_near }
        }),
        1 => Just(CopyStep::Import),
    ]
}

fn pause() -> impl Strategy<Value = Duration> {
    (1u64..8).prop_map(|tens| Duration::from_secs(10 * tens))
}

fn write() -> impl Strategy<Value = WriteStep> {
    let operations = prop_oneof![
        6 => vec(op(), 1),
        1 => Just(Vec::new()),
        3 => vec(op(), 2..7),
        1 => vec(op(), 7..30),
    ];
    let metadata = (metadata(), option::weighted(0.5, expects()));
    let guards = prop_oneof![4 => Just(Vec::new()), 1 => vec((key(), expects()), 1..3)];
    (
        operations,
        guards,
        option::weighted(0.15, metadata),
        option::weighted(
            0.1,
            select(&[65, 95, 3_605][..]).prop_map(Duration::from_secs),
        ),
        option::weighted(0.15, precondition()),
        prop_oneof![
            6 => Just(TombstoneCheck::Always),
            2 => Just(TombstoneCheck::Never),
            2 => (0usize..6).prop_map(TombstoneCheck::After),
        ],
        option::weighted(0.3, 0u8..3),
        any::<bool>(),
        (caller(), option::weighted(0.1, owner()), turn_number()),
    )
        .prop_map(
            |(
                operations,
                guards,
                metadata,
                ttl,
                precondition,
                tombstone,
                idempotency,
                describe,
                (caller, owner, turn),
            )| WriteStep {
                operations,
                guards,
                metadata,
                ttl,
                precondition,
                tombstone,
                idempotency,
                describe: describe && (ttl.is_some() || idempotency.is_some()),
                caller,
                owner,
                turn,
            },
        )
}

fn op() -> impl Strategy<Value = Op> {
    let window = option::of(prop_oneof![
        1 => Just(0u64),
        3 => 1u64..6,
        3 => 6u64..60,
        1 => Just(u64::MAX),
    ]);
    prop_oneof![
        5 => (key(), value()).prop_map(|(key, value)| Op::Set(key, value)),
        2 => key().prop_map(Op::Delete),
        1 => Just(Op::Clear),
        8 => (key(), element(), window, mismatch()).prop_map(|(key, element, window, mismatch)| {
            Op::Push(key, element, window, mismatch)
        }),
        3 => (key(), prop_oneof![3 => 1u64..6, 1 => 6u64..60, 1 => Just(1_000)])
            .prop_map(|(key, count)| Op::Pop(key, count)),
        3 => (key(), select(&AMOUNTS[..])).prop_map(|(key, by)| Op::Increment(key, by)),
        3 => (select(&["a", "b", "c"][..]), scalar()).prop_map(|(id, value)| Op::Append(id, value)),
    ]
}

fn mismatch() -> impl Strategy<Value = Mismatch> {
    prop_oneof![3 => Just(Mismatch::Refuse), 1 => Just(Mismatch::Skip)]
}

/// Generates keys. The first keys occur more often than the others.
fn key() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => select(&KEYS[..2]),
        1 => select(&KEYS[..]),
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => scalar(),
        2 => object(),
        1 => string(),
        6 => array(),
        1 => nested(),
    ]
}

fn element() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => scalar(),
        1 => object(),
        6 => string(),
        1 => short_array(),
        1 => nested(),
    ]
}

fn scalar() -> impl Strategy<Value = String> {
    select(&SCALARS[..]).prop_map(ToOwned::to_owned)
}

fn object() -> impl Strategy<Value = String> {
    select(&OBJECTS[..]).prop_map(ToOwned::to_owned)
}

fn string() -> impl Strategy<Value = String> {
    let bytes = prop_oneof![
        6 => 0usize..300,
        2 => 990usize..1_030,
        2 => 2_000usize..2_050,
        1 => 4_000usize..9_000,
    ];
    bytes.prop_map(|bytes| format!("\"{}\"", "x".repeat(bytes)))
}

fn array() -> impl Strategy<Value = String> {
    let few = vec(element(), 0..6);
    let many = (1usize..120, 0usize..70).prop_map(|(bytes, len)| {
        let element = |index: usize| format!("{}", index % 9 + 1).repeat(bytes);
        (0..len).map(element).collect()
    });
    let of_bytes = (1_990usize..2_060, 1usize..3).prop_map(|(bytes, chunks)| {
        let mut elements = vec!["[1,2]".to_owned(); chunks * 300];
        elements.push("7".repeat(bytes - 1_800));
        elements
    });
    prop_oneof![4 => few, 4 => many, 2 => of_bytes]
        .prop_map(|elements: Vec<_>| format!("[{}]", elements.join(",")))
}

fn short_array() -> impl Strategy<Value = String> {
    vec(scalar(), 0..4).prop_map(|elements| format!("[{}]", elements.join(",")))
}

fn nested() -> impl Strategy<Value = String> {
    (1usize..250, any::<bool>()).prop_map(|(levels, as_arrays)| {
        let (open, close) = if as_arrays {
            ("[", "]")
        } else {
            ("{\"\":[", "]}")
        };
        format!("{}{}", open.repeat(levels), close.repeat(levels))
    })
}

fn metadata() -> impl Strategy<Value = String> {
    let large =
        (16_370usize..16_390).prop_map(|bytes| format!("{{\"m\":\"{}\"}}", "x".repeat(bytes - 8)));
    prop_oneof![6 => object(), 1 => large]
}

fn expects() -> impl Strategy<Value = Expects> {
    prop_oneof![
        4 => Just(Expects::Current),
        1 => select(&OBJECTS[..]).prop_map(Expects::Object),
        1 => Just(Expects::NotAnObject),
    ]
}

fn precondition() -> impl Strategy<Value = PreconditionStep> {
    prop_oneof![
        2 => Just(PreconditionStep::Exists),
        2 => (0u64..4).prop_map(PreconditionStep::Version),
        3 => Just(PreconditionStep::CurrentVersion),
        3 => (0usize..6).prop_map(PreconditionStep::Seen),
    ]
}

fn read() -> impl Strategy<Value = ReadStep> {
    let number = || prop_oneof![4 => 0u64..80, 1 => Just(u64::MAX)];
    let slice = prop_oneof![
        number().prop_map(Slice::Tail),
        (number(), option::of(number())).prop_map(|(offset, limit)| Slice::Range { offset, limit }),
    ];
    prop_oneof![
        1 => vec(key(), 0..4).prop_map(ReadStep::Values),
        4 => (key(), option::weighted(0.8, slice))
            .prop_map(|(key, slice)| ReadStep::Value(key, slice)),
        1 => Just(ReadStep::Keys),
        1 => Just(ReadStep::Thread),
        1 => Just(ReadStep::History),
    ]
}

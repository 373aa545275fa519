//! Encodes guards and operations for `lua/threads/write.lua`.
//!
//! Each field is sent once, and operations refer to it by number. Consecutive steps of one kind are sent as one run.
//! The script therefore spends little time on each key, even if a state has 10,000 keys.

use std::borrow::Cow;
use std::collections::HashMap;

use super::arguments::put;
use super::effects::record;
use crate::shared::member::{field, plain_text};
use crate::transport::Command;
use threadkeep_domain::scope::HistoryLimit;
use threadkeep_domain::{
    Array, Guard, GuardedValue, Key, Mismatch, Operation, Value, appends, settles,
};

/// One-based numbers of the fields, in the order of their first use.
struct Numbers<'a> {
    by_key: HashMap<&'a Key, usize>,
}

/// Steps of one kind on consecutive fields, and the values of these steps, if any.
#[derive(Default)]
struct Run<'a> {
    code: &'static str,
    first: usize,
    len: usize,
    texts: Vec<Cow<'a, [u8]>>,
}

pub(crate) fn add(cmd: &mut Command, guards: &[Guard], operations: &[Operation]) {
    let numbers = Numbers::add(cmd, guards, operations);
    let mut run = Run::default();
    for guard in guards {
        let number = numbers.of(&guard.key);
        match &guard.expected {
            GuardedValue::Object(old) => {
                run.step(cmd, "E", number, Some(old.as_str().as_bytes().into()));
            }
            GuardedValue::NotAnObject => run.step(cmd, "N", number, None),
        }
    }
    run.end(cmd);
    // only a push needs the number of elements
    let counts = operations
        .iter()
        .any(|operation| matches!(operation, Operation::Push { .. }));
    for operation in operations {
        add_operation(cmd, &numbers, &mut run, operation, counts);
    }
    run.end(cmd);
}

/// Adds the items that operations append to the history. The script expects these arguments after all other arguments.
pub(crate) fn add_items(cmd: &mut Command, operations: &[Operation], limit: HistoryLimit) {
    let mut count = 0;
    for (_, item) in appends(operations) {
        cmd.arg(item.id.as_str())
            .arg(item.value.as_str())
            .arg(&item.fingerprint().0[..]);
        count += 1;
    }
    let mut packed = Vec::with_capacity(11);
    put(&mut packed, count, 4);
    put(&mut packed, limit.max_bytes, 6);
    put(&mut packed, limit.drops_oldest.into(), 1);
    cmd.arg(packed);
}

/// Adds the effects that operations settle. The script expects these arguments after the items.
pub(crate) fn add_settles(cmd: &mut Command, operations: &[Operation]) {
    let mut count = 0_u64;
    for (_, settle) in settles(operations) {
        let (state, value) = record::outcome(&settle.outcome);
        cmd.arg(settle.id.as_str())
            .arg(settle.fence.map_or_else(Vec::new, |fence| fence.0.to_vec()))
            .arg(state)
            .arg(value);
        count += 1;
    }
    cmd.arg(count);
}

fn add_operation<'a>(
    cmd: &mut Command,
    numbers: &Numbers<'_>,
    run: &mut Run<'a>,
    operation: &'a Operation,
    counts: bool,
) {
    let number = operation.key().map_or(0, |key| numbers.of(key));
    match operation {
        Operation::Set { value, .. } => match (plain_text(value), value) {
            (Some(text), Value::Array(array)) if counts => {
                run.end(cmd);
                cmd.arg("L").arg(number).arg(array.len()).arg(&*text);
            }
            (Some(text), _) => run.step(cmd, "S", number, Some(text)),
            (None, Value::Array(array)) => {
                run.end(cmd);
                add_array(cmd, number, array);
            }
            (None, Value::Text(_)) => {}
        },
        Operation::Delete { .. } => run.step(cmd, "D", number, None),
        Operation::Clear => {
            run.end(cmd);
            cmd.arg("C");
        }
        Operation::Push {
            value,
            max_records,
            mismatch,
            ..
        } => {
            run.end(cmd);
            cmd.arg(match mismatch {
                Mismatch::Refuse => "P",
                Mismatch::Skip => "Q",
            });
            cmd.arg(number).arg(value.as_str());
            match max_records {
                None => cmd.arg(""),
                Some(window) => cmd.arg(window),
            };
        }
        Operation::Pop { count, .. } => {
            run.end(cmd);
            cmd.arg("O").arg(number).arg(*count);
        }
        Operation::Increment { by, .. } => {
            run.end(cmd);
            cmd.arg("I").arg(number).arg(*by);
        }
        Operation::Append(_) | Operation::Settle(_) => {}
    }
}

/// Splits a large array into chunks, and adds these to the arguments. The script cannot split an array, because it does
/// not parse JSON.
fn add_array(cmd: &mut Command, number: usize, array: &Array) {
    let chunks = array.chunks();
    cmd.arg("A")
        .arg(number)
        .arg(array.len())
        .arg(array.json_bytes() - 1)
        .arg(chunks.len());
    let mut ordinal = 0;
    for (elements, len) in chunks {
        let mut chunk = ordinal.to_string().into_bytes();
        chunk.extend_from_slice(elements);
        cmd.arg(chunk);
        ordinal += len;
    }
}

impl<'a> Numbers<'a> {
    /// Numbers the fields, and adds their count and names.
    fn add(cmd: &mut Command, guards: &'a [Guard], operations: &'a [Operation]) -> Self {
        let guarded = guards.iter().map(|guard| &guard.key);
        let keys = guarded.chain(operations.iter().filter_map(Operation::key));
        let mut by_key = HashMap::new();
        let mut fields = Vec::new();
        for key in keys {
            by_key.entry(key).or_insert_with(|| {
                fields.push(field(key));
                fields.len()
            });
        }
        cmd.arg(fields.len()).args(fields);
        Self { by_key }
    }

    fn of(&self, key: &Key) -> usize {
        self.by_key.get(key).copied().unwrap_or_default()
    }
}

impl<'a> Run<'a> {
    /// Adds a step. If the step does not continue the current run, writes that run first.
    fn step(
        &mut self,
        cmd: &mut Command,
        code: &'static str,
        number: usize,
        text: Option<Cow<'a, [u8]>>,
    ) {
        if self.code != code || self.first + self.len != number {
            self.end(cmd);
            self.code = code;
            self.first = number;
        }
        self.len += 1;
        self.texts.extend(text);
    }

    fn end(&mut self, cmd: &mut Command) {
        if self.len > 0 {
            cmd.arg(self.code).arg(self.first).arg(self.len);
            for text in self.texts.drain(..) {
                cmd.arg(&*text);
            }
        }
        self.len = 0;
        self.code = "";
    }
}

//! Determines which thread a store call uses, and how many bytes it transfers. Refused calls never reach these
//! functions, and replays are not counted.

use bytes::Bytes;

use threadkeep_domain::scope::{KvOperation, ScopeId, ScopeWrite, ScopeWritten};
use threadkeep_domain::{Operation, Thread, ThreadId, Write, Written};
use threadkeep_stats::Use;
use threadkeep_store::{
    Destroyed, Found, HistoryPage, Imported, ItemPosition, Part, Rotated, ScopeView, StateBody,
    Whole,
};

fn read(id: &ThreadId, bytes: usize, state_bytes: Option<u64>) -> Use<'_> {
    Use {
        id,
        is_write: false,
        bytes: bytes as u64,
        state_bytes,
    }
}

fn write(id: &ThreadId, bytes: usize, state_bytes: Option<u64>) -> Use<'_> {
    Use {
        is_write: true,
        ..read(id, bytes, state_bytes)
    }
}

pub(super) fn state<'a>(id: &'a ThreadId, found: &Option<Found<Bytes>>) -> Option<Use<'a>> {
    let bytes = found.as_ref().map(|found| found.content.len());
    let state_bytes = bytes.map(|bytes| bytes as u64);
    Some(read(id, bytes.unwrap_or(0), state_bytes))
}

pub(super) fn state_body<'a>(
    id: &'a ThreadId,
    found: &Option<Found<StateBody>>,
) -> Option<Use<'a>> {
    Some(match found.as_ref().map(|found| &found.content) {
        Some(StateBody::Text(text) | StateBody::Compressible(text)) => {
            read(id, text.len(), Some(text.len() as u64))
        }
        // the uncompressed size of the state is unknown
        Some(StateBody::Gzip(bytes)) => read(id, bytes.len(), None),
        None => read(id, 0, None),
    })
}

pub(super) fn whole<'a>(id: &'a ThreadId, found: &Option<Found<Whole>>) -> Option<Use<'a>> {
    let Some(Found { content, .. }) = found else {
        return Some(read(id, 0, None));
    };
    let state = content.state.len();
    let bytes = state + content.metadata.as_str().len();
    Some(read(id, bytes, Some(state as u64)))
}

pub(super) fn values<'a>(
    id: &'a ThreadId,
    found: &Option<Found<Vec<Option<Bytes>>>>,
) -> Option<Use<'a>> {
    let values = found.iter().flat_map(|found| &found.content);
    Some(read(id, values.flatten().map(Bytes::len).sum(), None))
}

pub(super) fn value<'a>(id: &'a ThreadId, found: &Option<Found<Option<Part>>>) -> Option<Use<'a>> {
    let part = found.as_ref().and_then(|found| found.content.as_ref());
    Some(read(id, part.map_or(0, |part| part.json.len()), None))
}

/// Returns the [`Use`] for a read that returns no values, such as a read of a thread's version or keys.
pub(super) fn without_values<'a, T>(id: &'a ThreadId, _: &T) -> Option<Use<'a>> {
    Some(read(id, 0, None))
}

pub(super) fn thread<'a>(id: &'a ThreadId, thread: &Option<Thread>) -> Option<Use<'a>> {
    let state_bytes = thread.as_ref().map(|thread| thread.size_bytes);
    Some(read(id, 0, state_bytes))
}

pub(super) fn written<'a>(
    id: &'a ThreadId,
    sent: &Write<'_>,
    written: &Written,
) -> Option<Use<'a>> {
    let operations = sent.operations.iter().map(|operation| match operation {
        Operation::Set { value, .. } => value.json_bytes(),
        Operation::Push { value, .. } => value.as_str().len(),
        Operation::Append(item) => item.value.as_str().len(),
        Operation::Settle(settle) => settle.outcome.value().as_str().len(),
        Operation::Delete { .. }
        | Operation::Clear
        | Operation::Pop { .. }
        | Operation::Increment { .. } => 0,
    });
    let metadata = sent.metadata.map_or(0, |change| change.new.as_str().len());
    let bytes = operations.sum::<usize>() + metadata;
    (!written.replayed).then(|| write(id, bytes, Some(written.size_bytes)))
}

/// Returns the [`Use`] for a write that copies values within the store, so that the call transfers no values.
pub(super) fn copied<'a>(id: &'a ThreadId, written: &Written) -> Option<Use<'a>> {
    (!written.replayed).then(|| write(id, 0, Some(written.size_bytes)))
}

pub(super) fn imported<'a>(id: &'a ThreadId, imported: &Imported) -> Option<Use<'a>> {
    match imported {
        Imported::Made(written) if !written.replayed => {
            let bytes = written.size_bytes;
            Some(write(id, bytes as usize, Some(bytes)))
        }
        Imported::Made(_) | Imported::Skipped(_) => None,
    }
}

pub(super) fn destroyed<'a>(id: &'a ThreadId, destroyed: &Destroyed) -> Option<Use<'a>> {
    (destroyed.existed && !destroyed.replayed).then(|| write(id, 0, None))
}

pub(super) fn rotated<'a>(id: &'a ThreadId, rotated: &Rotated) -> Option<Use<'a>> {
    (rotated.thread.is_some() && !rotated.replayed).then(|| write(id, 0, None))
}

pub(super) fn view<'a>(scope: &'a ScopeId, view: &Option<ScopeView>) -> Option<Use<'a>> {
    let values = view.iter().flat_map(|view| &view.values).flatten();
    let bytes = values.map(|value| value.as_str().len()).sum();
    Some(read(scope.thread()?, bytes, None))
}

pub(super) fn history<'a>(scope: &'a ScopeId, page: &Option<HistoryPage>) -> Option<Use<'a>> {
    let items = page.iter().flat_map(|page| &page.items);
    let bytes = items.map(|item| item.value.as_str().len()).sum();
    Some(read(scope.thread()?, bytes, None))
}

pub(super) fn item<'a>(scope: &'a ScopeId, _: &Option<ItemPosition>) -> Option<Use<'a>> {
    Some(read(scope.thread()?, 0, None))
}

pub(super) fn scope_written<'a>(
    scope: &'a ScopeId,
    sent: &ScopeWrite<'_>,
    written: &ScopeWritten,
) -> Option<Use<'a>> {
    let id = scope.thread().filter(|_| !written.replayed)?;
    let operations = sent.operations.iter().map(|operation| match operation {
        KvOperation::Set { value, .. } => value.as_str().len(),
        KvOperation::Delete { .. } | KvOperation::Increment { .. } | KvOperation::Clear => 0,
    });
    let items = sent.history.iter().map(|item| item.value.as_str().len());
    Some(write(id, operations.chain(items).sum(), None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_domain::{Json, Key, Stamp, ThreadPolicy, Value};

    fn result(replayed: bool) -> Written {
        Written {
            stamp: Stamp::default(),
            size_bytes: 900,
            answers: Vec::new(),
            thread: None,
            replayed,
        }
    }

    #[test]
    fn a_write_counts_its_values_once() {
        let id = ThreadId::random();
        let key = || Key::new("k").unwrap();
        let operations = [
            Operation::Set {
                key: key(),
                value: Value::parse("[1, 2]").unwrap(),
            },
            Operation::Push {
                key: key(),
                value: Json::parse("\"abc\"").unwrap(),
                max_records: None,
                mismatch: threadkeep_domain::Mismatch::Refuse,
            },
            Operation::Delete { key: key() },
        ];
        let policy = ThreadPolicy::THREAD;
        let write = Write {
            operations: &operations,
            ..Write::new(&policy)
        };

        let used = written(&id, &write, &result(false)).unwrap();

        assert!(used.is_write);
        assert_eq!((used.bytes, used.state_bytes), (10, Some(900)));
        assert!(written(&id, &write, &result(true)).is_none());
        assert!(copied(&id, &result(true)).is_none());
    }

    #[test]
    fn a_read_of_a_state_counts_its_bytes() {
        let id = ThreadId::random();
        let found = Found {
            stamp: Stamp::default(),
            content: Bytes::from_static(b"{\"a\":1}"),
        };

        let used = state(&id, &Some(found)).unwrap();
        let absent = state(&id, &None).unwrap();

        assert!(!used.is_write);
        assert_eq!((used.bytes, used.state_bytes), (7, Some(7)));
        assert_eq!((absent.bytes, absent.state_bytes), (0, None));
    }

    #[test]
    fn only_thread_scopes_count_as_uses_of_threads() {
        let id = ThreadId::random();
        let session: ScopeId = "session:s".parse().unwrap();

        assert!(view(&session, &None).is_none());
        assert!(view(&ScopeId::Thread(id), &None).is_some());
    }
}

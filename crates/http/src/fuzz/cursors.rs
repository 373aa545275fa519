use crate::request::cursor::{Cursor, open, seal};
use threadkeep_domain::{EntryKey, EventId, KeyRing, SigningKey};
use threadkeep_events::{ThreadCursor, Watermark};
use threadkeep_fuzzing::{Bound, Input, fuzz};
use threadkeep_store::{ArchivePosition, NamespacePosition};

const LIST_ID: &[u8] = b"a thread";
const CHANGED_BYTES_MAX: usize = 64;

#[test]
fn only_an_unchanged_cursor_opens() {
    fuzz("cursors", |input| {
        check::<ThreadCursor>(input);
        check::<Watermark>(input);
        check::<ArchivePosition>(input);
        check::<EventId>(input);
        check::<EntryKey>(input);
        check::<NamespacePosition>(input);
    });
}

fn check<C: Cursor>(input: Input<'_>) {
    let ring = ring("ours");
    if let Some(text) = input.text() {
        let opened = Bound::LINEAR.hold(text.len(), || open::<C>(&ring, LIST_ID, text).is_ok());
        assert!(!opened, "a forged cursor opened");
    }

    let read = Bound::LINEAR.hold(input.bytes().len(), || C::read(input.bytes()));
    let Some(cursor) = read else { return };
    assert_eq!(
        bytes(&cursor),
        input.bytes(),
        "a cursor has only one encoding"
    );

    let sealed = Bound::LINEAR.hold(input.bytes().len(), || seal(&ring, LIST_ID, &cursor));
    let tag_and_base64 = 4 * (input.bytes().len() + 16).div_ceil(3);
    assert!(sealed.len() <= tag_and_base64);
    let opened = open::<C>(&ring, LIST_ID, &sealed)
        .ok()
        .map(|cursor| bytes(&cursor));
    assert_eq!(opened.as_deref(), Some(input.bytes()));
    assert!(open::<C>(&ring, b"another", &sealed).is_err());
    assert!(open::<C>(&super::cursors::ring("theirs"), LIST_ID, &sealed).is_err());
    let step = sealed.len().div_ceil(CHANGED_BYTES_MAX);
    for index in (0..sealed.len()).step_by(step) {
        let mut changed = sealed.clone();
        let replacement = if changed[index..].starts_with('A') {
            "B"
        } else {
            "A"
        };
        changed.replace_range(index..index + 1, replacement);
        assert!(open::<C>(&ring, LIST_ID, &changed).is_err(), "{changed}");
    }
}

fn bytes(cursor: &impl Cursor) -> Vec<u8> {
    let mut bytes = Vec::new();
    cursor.write(&mut bytes);
    bytes
}

fn ring(secret: &str) -> KeyRing {
    KeyRing::new(vec![SigningKey::new("main", secret.as_bytes())]).unwrap()
}

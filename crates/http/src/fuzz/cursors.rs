use crate::request::cursor::{Cursor, open, seal};
use threadkeep_domain::{EntryKey, EventId, KeyRing, SigningKey};
use threadkeep_events::{ThreadCursor, Watermark};
use threadkeep_fuzzing::{Bound, Input, fuzz};
use threadkeep_store::{ArchivePlace, NamespacePlace};

const ABOUT: &[u8] = b"a thread";
const PLACES: usize = 64;

#[test]
fn a_cursor_opens_as_it_was_sealed_and_nothing_else_opens() {
    fuzz("cursors", |input| {
        holds::<ThreadCursor>(input);
        holds::<Watermark>(input);
        holds::<ArchivePlace>(input);
        holds::<EventId>(input);
        holds::<EntryKey>(input);
        holds::<NamespacePlace>(input);
    });
}

fn holds<C: Cursor>(input: Input<'_>) {
    let ring = ring("ours");
    if let Some(text) = input.text() {
        let opened = Bound::LINEAR.hold(text.len(), || open::<C>(&ring, ABOUT, text).is_ok());
        assert!(!opened, "nobody has sealed it");
    }

    let read = Bound::LINEAR.hold(input.bytes().len(), || C::read(input.bytes()));
    let Some(cursor) = read else { return };
    assert_eq!(
        bytes(&cursor),
        input.bytes(),
        "each place is written in one way"
    );

    let sealed = Bound::LINEAR.hold(input.bytes().len(), || seal(&ring, ABOUT, &cursor));
    let tag_and_base64 = 4 * (input.bytes().len() + 16).div_ceil(3);
    assert!(sealed.len() <= tag_and_base64);
    let opened = open::<C>(&ring, ABOUT, &sealed)
        .ok()
        .map(|cursor| bytes(&cursor));
    assert_eq!(opened.as_deref(), Some(input.bytes()));
    assert!(open::<C>(&ring, b"another", &sealed).is_err());
    assert!(open::<C>(&super::cursors::ring("theirs"), ABOUT, &sealed).is_err());
    let step = sealed.len().div_ceil(PLACES);
    for index in (0..sealed.len()).step_by(step) {
        let mut changed = sealed.clone();
        let other = if changed[index..].starts_with('A') {
            "B"
        } else {
            "A"
        };
        changed.replace_range(index..index + 1, other);
        assert!(open::<C>(&ring, ABOUT, &changed).is_err(), "{changed}");
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

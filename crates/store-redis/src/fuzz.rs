//! Fuzz target for data in Redis, which may have been written by another program.

use redis::Value;

use super::kv::entry_text;
use super::shared::{Header, cut, ordinal, state, write_plain};
use super::threads::{replies, slices};
use super::transport::Field;
use threadkeep_domain::{Namespace, Slice, ThreadPolicy};
use threadkeep_fuzzing::{Bound, fuzz};

const SEPARATOR: u8 = b'\x1e';

#[test]
fn stored_data_of_any_form_is_parsed_or_rejected() {
    let namespace = Namespace::new("n").unwrap();
    fuzz("stored", |input| {
        let texts: Vec<&[u8]> = input.bytes().split(|byte| *byte == SEPARATOR).collect();
        let bytes = input.bytes().len();
        reads_states(&texts, bytes);
        reads_replies(&texts, bytes);
        for text in &texts {
            Bound::LINEAR.hold(bytes, || {
                drop(entry_text::entry(text.to_vec()));
                drop(entry_text::head(text, None));
                drop(entry_text::record(&namespace, text));
                drop(ordinal(text));
                drop(Header::read(text).map(|header| header.len()));
            });
            let mut out = Vec::new();
            write_plain(text, &mut out);
            assert!(out.len() <= text.len() + 1);
            for (from, count) in [(0, u64::MAX), (1, 1), (u64::MAX, u64::MAX)] {
                assert!(cut(text, from, count).len() <= text.len());
            }
        }
    });
}

fn reads_states(texts: &[&[u8]], bytes: usize) {
    let (pairs, _) = texts.as_chunks::<2>();
    let fields: Vec<Field<'_>> = pairs
        .iter()
        .map(|[field, value]| (*field, *value))
        .collect();
    let assembled = Bound::LINEAR.hold(bytes, || state::assemble_content(&fields));
    if let Ok(Some((_, content))) = assembled {
        assert!(content.state.len() <= bytes + 2);
    }
}

/// Parses replies built from `texts`. In the replies, an integer represents each item that parses as an integer, nil
/// represents an empty item, and a string represents any other item.
fn reads_replies(texts: &[&[u8]], bytes: usize) {
    let value = |text: &&[u8]| match str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
        Some(number) => Value::Int(number),
        None if text.is_empty() => Value::Nil,
        None => Value::BulkString(text.to_vec()),
    };
    let values: Vec<_> = texts.iter().map(value).collect();
    let nested = match values.split_first() {
        Some((first, rest)) => Value::Array(vec![first.clone(), Value::Array(rest.to_vec())]),
        None => Value::Nil,
    };
    for reply in [Value::Array(values), nested] {
        Bound::LINEAR.hold(bytes, || {
            drop(state::values(&reply));
            drop(state::keys(&reply));
            for slice in [
                Slice::Tail(2),
                Slice::Range {
                    offset: 1,
                    limit: None,
                },
            ] {
                drop(slices::part(&reply, slice));
            }
            drop(replies::thread(reply.clone()));
            drop(replies::destroyed(reply.clone()));
            drop(replies::restored(reply.clone(), &ThreadPolicy::THREAD));
        });
    }
}

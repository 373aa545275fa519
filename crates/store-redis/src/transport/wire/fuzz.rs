use redis::parse_redis_value;

use super::{Reader, Scan, value};
use threadkeep_fuzzing::{Bound, fuzz};

/// Bound for scanning, which copies nothing.
const SCAN: Bound = Bound {
    held: 0,
    allocated: 0,
    nanos: 1_000,
};
/// Bound for parsing, per byte of input. The shortest value is 3 bytes long, and takes up 56 bytes when parsed. Rare
/// types are parsed by the `redis` crate, which uses a buffer of 8 KB for each value.
const READ: Bound = Bound {
    held: 64,
    allocated: 4_000,
    nanos: 3_000,
};
/// Maximum size of an input that is also scanned as it arrives byte by byte, which takes one scan per byte.
const BYTE_BY_BYTE: usize = 4_096;
/// Size of the arrays that the test generates, because random changes never produce a long array with a correct count.
const ARRAY_BYTES: usize = 20_000;

#[test]
fn replies_are_delimited_and_parsed_like_in_the_redis_crate() {
    fuzz("resp", |input| {
        let bytes = input.bytes();
        reads_in_place(bytes);
        for replies in [1, 2, 7] {
            let end = SCAN.hold(bytes.len(), || Scan::of(replies).end(bytes));
            if bytes.len() <= BYTE_BY_BYTE {
                ends_equally_byte_by_byte(bytes, replies, end.as_ref().ok().copied());
            }
            if let Ok(Some(end)) = end {
                matches_the_library(&bytes[..end], replies);
                if replies == 1 && end == bytes.len() && end <= 64 {
                    matches_the_library(&array(&bytes[..end]), 1);
                }
            }
        }
    });
}

fn array(reply: &[u8]) -> Vec<u8> {
    let count = ARRAY_BYTES / reply.len();
    [format!("*{count}\r\n").as_bytes(), &reply.repeat(count)].concat()
}

/// Checks that a byte-by-byte scan has the same result as `expected`, and finds the end as soon as its byte arrives.
fn ends_equally_byte_by_byte(bytes: &[u8], replies: usize, expected: Option<Option<usize>>) {
    let mut scan = Scan::of(replies);
    let steps = (0..=bytes.len()).map(|received| (received, scan.end(&bytes[..received])));
    for (received, end) in steps {
        match end {
            Ok(None) => {}
            Ok(Some(end)) => {
                assert_eq!((Some(Some(end)), end), (expected, received));
                return;
            }
            Err(_) => {
                assert_eq!(expected, None);
                return;
            }
        }
    }
    assert_eq!(expected, Some(None));
}

fn matches_the_library(replies: &[u8], count: usize) {
    let values = READ.hold(replies.len(), || value::values(replies, count));

    let mut at = 0;
    let mut library = Vec::new();
    for _ in 0..count {
        let end = Scan::of(1).end(&replies[at..]).unwrap().unwrap();
        // skips deeply nested values, which would overflow the stack of the `redis` crate
        if let (Ok(_), Ok(value)) = (&values, parse_redis_value(&replies[at..at + end])) {
            library.push(value);
        }
        at += end;
    }
    assert_eq!(at, replies.len());
    if let Ok(values) = values
        && library.len() == count
    {
        // compared as text, because NaN does not equal itself
        assert_eq!(format!("{values:?}"), format!("{library:?}"));
    }
}

fn reads_in_place(bytes: &[u8]) {
    SCAN.hold(bytes.len(), || {
        let mut reader = Reader::new(bytes);
        while !reader.rest().is_empty() {
            let before = reader.rest().len();
            drop(reader.integer());
            drop(reader.map());
            drop(reader.string());
            if reader.rest().len() == before {
                assert!(reader.raw(1).is_ok());
            }
        }
    });
}

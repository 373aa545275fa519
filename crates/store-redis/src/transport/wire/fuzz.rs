//! Fuzz target of what Redis answers.

use redis::parse_redis_value;

use super::{Reader, Scan, value};
use threadkeep_fuzzing::{Bound, fuzz};

/// Where replies end is found without a copy.
const SCAN: Bound = Bound {
    held: 0,
    allocated: 0,
    nanos: 1_000,
};
/// The shortest value, of three bytes, becomes one of 56. The library, which reads the rare ones, has
/// a buffer of eight kilobytes for each.
const READ: Bound = Bound {
    held: 64,
    allocated: 4_000,
    nanos: 3_000,
};
/// An input that comes byte by byte is looked at as often as it has bytes.
const BYTE_BY_BYTE: usize = 4_096;
/// Short replies are also read inside arrays of this size: random changes never produce a long array with a correct
/// count.
const ARRAY_BYTES: usize = 20_000;

#[test]
fn replies_end_where_they_end_and_are_read_as_a_library_reads_them() {
    fuzz("resp", |input| {
        let bytes = input.bytes();
        reads_in_place(bytes);
        for replies in [1, 2, 7] {
            let end = SCAN.hold(bytes.len(), || Scan::of(replies).end(bytes));
            if bytes.len() <= BYTE_BY_BYTE {
                ends_there_byte_by_byte(bytes, replies, end.as_ref().ok().copied());
            }
            if let Ok(Some(end)) = end {
                is_as_of_the_library(&bytes[..end], replies);
                if replies == 1 && end == bytes.len() && end <= 64 {
                    is_as_of_the_library(&array(&bytes[..end]), 1);
                }
            }
        }
    });
}

fn array(reply: &[u8]) -> Vec<u8> {
    let count = ARRAY_BYTES / reply.len();
    [format!("*{count}\r\n").as_bytes(), &reply.repeat(count)].concat()
}

/// An error that shows may show late, but an end does not.
fn ends_there_byte_by_byte(bytes: &[u8], replies: usize, whole: Option<Option<usize>>) {
    let mut scan = Scan::of(replies);
    let steps = (0..=bytes.len()).map(|come| (come, scan.end(&bytes[..come])));
    for (come, end) in steps {
        match end {
            Ok(None) => {}
            Ok(Some(end)) => {
                assert_eq!((Some(Some(end)), end), (whole, come));
                return;
            }
            Err(_) => {
                assert_eq!(whole, None);
                return;
            }
        }
    }
    assert_eq!(whole, Some(None));
}

fn is_as_of_the_library(replies: &[u8], count: usize) {
    let values = READ.hold(replies.len(), || value::values(replies, count));

    let mut at = 0;
    let mut library = Vec::new();
    for _ in 0..count {
        let end = Scan::of(1).end(&replies[at..]).unwrap().unwrap();
        // deep values are refused here, and would fill the library's stack
        if let (Ok(_), Ok(value)) = (&values, parse_redis_value(&replies[at..at + end])) {
            library.push(value);
        }
        at += end;
    }
    assert_eq!(at, replies.len());
    if let Ok(values) = values
        && library.len() == count
    {
        // as text, in which a double that is no number equals itself
        assert_eq!(format!("{values:?}"), format!("{library:?}"));
    }
}

/// Reads what may be there, in every form, as long as there is something.
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

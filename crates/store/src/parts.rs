//! Converts values to the results of reads.

use bytes::Bytes;

use super::Part;
use threadkeep_domain::{Slice, Value};

/// Returns a value as compact JSON.
pub fn json(value: &Value) -> Bytes {
    value.to_json().into()
}

/// Returns a value, or the requested slice if it is an array.
pub fn part(value: &Value, slice: Option<Slice>) -> Part {
    match (value, slice) {
        (Value::Array(array), Some(slice)) => {
            let (from, count) = slice.of(array.len() as u64);
            let mut out = Vec::new();
            array.write_json(from as usize, count as usize, &mut out);
            Part {
                json: out.into(),
                total: Some(array.len() as u64),
            }
        }
        _ => Part {
            json: json(value),
            total: None,
        },
    }
}

//! Values as they are read.

use bytes::Bytes;

use super::Part;
use threadkeep_domain::{Slice, Value};

/// A value as compact JSON.
pub fn json(value: &Value) -> Bytes {
    value.to_json().into()
}

/// A value, or the part of it that is asked for if it is an array.
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

use bytes::Bytes;
use redis::{RedisError, Value};

use super::node::Reader;
use crate::transport::{UNKNOWN, bytes};
use threadkeep_store::StoreError;

#[derive(Debug)]
pub(crate) enum Fields {
    /// `count` pairs, which follow the header of the map.
    Raw {
        pairs: Bytes,
        count: usize,
    },
    Read(Value),
}

pub(crate) type Field<'a> = (&'a [u8], &'a [u8]);

impl Fields {
    /// Parses two replies: the number that a script returned, and the reply to HGETALL. Returns `None` for other
    /// replies, such as errors.
    pub(super) fn touched(replies: &Bytes) -> Option<(i64, Self)> {
        Self::read_touched(replies).ok().flatten()
    }

    pub(crate) fn read(touched: &Value, fields: Value) -> Result<(i64, Self), StoreError> {
        match touched {
            Value::Int(touched) => Ok((*touched, Self::Read(fields))),
            _ => Err(UNKNOWN),
        }
    }

    fn read_touched(replies: &Bytes) -> Result<Option<(i64, Self)>, RedisError> {
        let mut reader = Reader::new(replies);
        let Some(touched) = reader.integer()? else {
            return Ok(None);
        };
        let Some(count) = reader.map()? else {
            return Ok(None);
        };
        let pairs = replies.slice_ref(reader.rest());
        Ok(Some((touched, Self::Raw { pairs, count })))
    }

    pub(crate) fn pairs(&self) -> Result<Vec<Field<'_>>, StoreError> {
        match self {
            Self::Raw { pairs, count } => {
                let mut reader = Reader::new(pairs);
                let mut string = || reader.string().ok().flatten().ok_or(UNKNOWN);
                (0..*count).map(|_| Ok((string()?, string()?))).collect()
            }
            // RESP3 replies with a map
            Self::Read(Value::Map(pairs)) => pairs
                .iter()
                .map(|(field, value)| Ok((bytes(field)?, bytes(value)?)))
                .collect(),
            Self::Read(_) => Err(UNKNOWN),
        }
    }
}

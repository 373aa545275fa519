use super::schemas::{GetValues, SetKey, SetValues};
use crate::answer::ApiResult;
use crate::request::{List, Seconds, invalid};
use threadkeep_domain::scope::{KeyRule, KvOperation, ScopeError, ScopeKey, ScopeValue};
use threadkeep_web::ApiError;

impl GetValues {
    pub(super) fn read_keys(self, rule: KeyRule) -> ApiResult<Vec<ScopeKey>> {
        match (self.key, self.keys) {
            (Some(key), None) => Ok(vec![ScopeKey::new(key, rule)?]),
            (None, Some(List(keys))) => {
                let read = |(index, key)| ScopeKey::new(key, rule).map_err(at(Some(index)));
                keys.into_iter().enumerate().map(read).collect()
            }
            _ => Err(invalid("Give either `key` or `keys`")),
        }
    }
}

impl SetValues {
    pub(super) fn read_entries(self, rule: KeyRule) -> ApiResult<Vec<KvOperation>> {
        match self {
            Self {
                key: None,
                value: None,
                ttl_seconds: None,
                if_absent: None,
                entries: Some(List(entries)),
                ..
            } => {
                let entries = entries.into_iter().enumerate();
                entries
                    .map(|(index, entry)| entry.read(rule, Some(index)))
                    .collect()
            }
            Self {
                key: Some(key),
                value: Some(value),
                ttl_seconds,
                if_absent,
                entries: None,
                ..
            } => {
                let entry = SetKey {
                    key,
                    value,
                    ttl_seconds,
                    if_absent,
                };
                Ok(vec![entry.read(rule, None)?])
            }
            _ => Err(invalid("Give either `key` and `value`, or `entries`")),
        }
    }
}

impl SetKey {
    fn read(self, rule: KeyRule, index: Option<usize>) -> ApiResult<KvOperation> {
        Ok(KvOperation::Set {
            key: ScopeKey::new(self.key, rule).map_err(at(index))?,
            value: ScopeValue::new(self.value).map_err(at(index))?,
            ttl: self.ttl_seconds.map(Seconds::as_duration),
            if_absent: self.if_absent.unwrap_or_default(),
        })
    }
}

fn at(index: Option<usize>) -> impl Fn(ScopeError) -> ApiError {
    move |error| ApiError::ScopePart { error, index }
}

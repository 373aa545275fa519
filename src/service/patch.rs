//! Merge patches of a state.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{ServiceError, ThreadService, WriteOptions};
use crate::domain::{
    Expected, Guard, Json, Key, MergePatch, Operation, Patched, ThreadId, Value, Write, Written,
    merge_json,
};
use crate::store::{StoreError, millis};

/// The most bytes of values and patch that the attempts of one request may merge. Others who keep
/// changing the values can make each attempt fail, and with large values these would use a whole
/// core until the timeout. This is over 20 attempts with the largest state and body, and as good as
/// any number of small ones.
const MOST_MERGED_BYTES: usize = 64 * 1_048_576;

/// What the attempts of one request have merged so far.
#[derive(Debug, Default)]
struct Effort(AtomicUsize);

impl Effort {
    /// Whether another attempt over so many bytes may be made.
    fn spend(&self, bytes: usize) -> bool {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        before == 0 || before.saturating_add(bytes) <= MOST_MERGED_BYTES
    }
}

impl ThreadService {
    /// Merges a patch (RFC 7396) into the state.
    ///
    /// Only keys that the patch gives an object are read. A conflict is judged by their values,
    /// not by the thread's version, so that a busy thread does not starve it.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] or [`ServiceError::Store`].
    pub async fn patch_state(
        &self,
        id: &ThreadId,
        patch: &MergePatch,
        options: WriteOptions,
    ) -> Result<Written, ServiceError> {
        let merged_keys: Vec<_> = patch
            .keys()
            .iter()
            .filter(|(_, patched)| matches!(patched, Patched::Merge(_)))
            .map(|(key, _)| key.clone())
            .collect();
        self.store.admit(id).await?;
        let effort = Effort::default();
        self.until_unchanged(async || {
            let old = self.read_values(id, &merged_keys).await?;
            let old_bytes: usize = old.iter().flatten().map(|old| old.as_str().len()).sum();
            if !effort.spend(old_bytes + patch.merged_bytes()) {
                return Err(StoreError::Timeout(millis(self.timeout)).into());
            }
            let (operations, guards) = resolve(patch, old);
            let write = Write {
                operations: &operations,
                guards: &guards,
                ..self.plain(options)
            };
            Ok(self.store.write(id, &write).await?)
        })
        .await
    }

    /// The values of keys as they are; none for one that is absent.
    async fn read_values(
        &self,
        id: &ThreadId,
        keys: &[Key],
    ) -> Result<Vec<Option<Json>>, ServiceError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.store.get_values(id, keys).await?;
        let values = found.map_or_else(|| vec![None; keys.len()], |found| found.content);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(values
            .into_iter()
            .map(|value| value.map(|bytes| Json::from_compact(text(&bytes))))
            .collect())
    }
}

/// What a patch comes to, given the values of the keys that it merges into, in order.
fn resolve(patch: &MergePatch, old: Vec<Option<Json>>) -> (Vec<Operation>, Vec<Guard>) {
    let mut old = old.into_iter();
    let mut guards = Vec::new();
    let operations = patch
        .keys()
        .iter()
        .map(|(key, patched)| match patched {
            Patched::Delete => Operation::Delete { key: key.clone() },
            Patched::Set(value) => Operation::Set {
                key: key.clone(),
                value: value.clone(),
            },
            Patched::Merge(patch) => {
                let old = old.next().flatten().filter(Json::is_object);
                let merged = merge_json(old.as_ref(), patch);
                guards.push(Guard {
                    key: key.clone(),
                    expected: old.map_or(Expected::NotAnObject, Expected::Object),
                });
                Operation::Set {
                    key: key.clone(),
                    value: Value::Text(merged),
                }
            }
        })
        .collect();
    (operations, guards)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_end_when_they_have_merged_as_much_as_they_may() {
        let attempts = |bytes: usize| {
            let effort = Effort::default();
            (0..10_000).take_while(|_| effort.spend(bytes)).count()
        };

        assert_eq!(attempts(1_000), 10_000);
        assert_eq!(attempts(3 * 1_048_576), 21);
        assert_eq!(attempts(2 * MOST_MERGED_BYTES), 1, "the first always may");
    }
}

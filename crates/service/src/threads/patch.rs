use super::work_budget::WorkBudget;
use crate::attempts::until_unchanged;
use crate::{ServiceError, ThreadService, WriteOptions};
use threadkeep_domain::{
    Guard, GuardedValue, Json, Key, MergePatch, Operation, Patched, ThreadId, Value, Write,
    Written, merge_json,
};

impl ThreadService {
    /// Merges a patch (RFC 7396) into the state.
    ///
    /// Reads only the keys for which the patch has an object. Detects conflicts by comparing the values of those keys,
    /// not the thread's version. Writes to other keys of a busy thread therefore cannot make the patch fail repeatedly.
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
        self.admit(id).await?;
        let work_budget = WorkBudget::new(self.timeout);
        until_unchanged(self.timeout, || async {
            let old = self.read_values(id, &merged_keys).await?;
            let old_bytes: usize = old.iter().flatten().map(|old| old.as_str().len()).sum();
            work_budget.spend(old_bytes + patch.merged_bytes())?;
            let (operations, guards) = resolve(patch, old);
            let write = Write {
                operations: &operations,
                guards: &guards,
                ..self.plain(options)
            };
            self.commit(id, &write).await
        })
        .await
    }

    async fn read_values(
        &self,
        id: &ThreadId,
        keys: &[Key],
    ) -> Result<Vec<Option<Json>>, ServiceError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.store.get_values(id, self.access.into(), keys).await?;
        let values = found.map_or_else(|| vec![None; keys.len()], |found| found.content);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(values
            .into_iter()
            .map(|value| value.map(|bytes| Json::from_compact(text(&bytes))))
            .collect())
    }
}

/// Returns the operations of a patch, with guards that reject the write if a merged value has changed. `old` contains
/// the current values of the keys for which the patch has an object, in patch order.
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
                    expected: old.map_or(GuardedValue::NotAnObject, GuardedValue::Object),
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

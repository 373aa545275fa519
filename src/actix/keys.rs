use std::time::Duration;

use super::ScopeTarget;
use threadkeep_domain::Precondition;
use threadkeep_domain::scope::{
    KvAnswer, KvOperation, ScopeId, ScopeKey, ScopeValue, ScopeWritten,
};
use threadkeep_service::{ScopeService, WriteOptions};
use threadkeep_store::ScopeParts;
use threadkeep_web::ApiError;

/// The keys of a thread or another scope, such as a session, with string values.
///
/// Calls are not queued: each call is sent to the store immediately, and takes effect even if the request fails later.
/// A value can be up to 32,768 bytes long. A scope can have up to 256 keys, and up to 131,072 bytes of values in total.
/// A thread's keys are up to 128 bytes long, and consist of segments of `[A-Za-z0-9_.-]` separated by `/`. Keys of
/// sessions, tools and personalities can be any string of up to 1,024 bytes.
#[derive(Debug, Clone)]
pub struct Keys {
    target: ScopeTarget,
    options: WriteOptions,
}

impl Keys {
    pub(super) fn of(target: ScopeTarget) -> Self {
        Self {
            target,
            options: WriteOptions::default(),
        }
    }

    /// Makes writes succeed only if the scope has this version; 0 means that the scope does not exist. Otherwise,
    /// writes fail with [`Refusal::VersionMismatch`](threadkeep_domain::Refusal::VersionMismatch).
    #[must_use]
    pub fn if_version(self, version: u64) -> Self {
        let precondition = Some(Precondition::Version(version));
        let options = WriteOptions {
            precondition,
            ..self.options
        };
        Self { options, ..self }
    }

    /// Returns the scope's version, or 0 if the scope does not exist. Every write to the keys, tasks or history
    /// increments the version.
    pub async fn version(&self) -> Result<u64, ApiError> {
        let (scopes, scope) = self.target.open()?;
        let view = scopes.read(&scope, &ScopeParts::default()).await?;
        Ok(view.stamp.version)
    }

    /// Returns the value of a key.
    pub async fn get(&self, key: &str) -> Result<Option<String>, ApiError> {
        let mut values = self.get_many(&[key]).await?;
        Ok(values.pop().flatten())
    }

    /// Returns the values of several keys at one version.
    pub async fn get_many(&self, keys: &[&str]) -> Result<Vec<Option<String>>, ApiError> {
        let (scopes, scope) = self.target.open()?;
        let keys = keys.iter().map(|key| to_key(&scopes, &scope, key));
        let parts = ScopeParts {
            values: &keys.collect::<Result<Vec<_>, _>>()?,
            ..ScopeParts::default()
        };
        let view = scopes.read(&scope, &parts).await?;
        let values = view.values.into_iter();
        Ok(values.map(|value| Some(value?.into_string())).collect())
    }

    /// Sets a key that expires together with the scope.
    pub async fn set(&self, key: &str, value: &str) -> Result<(), ApiError> {
        self.put(key, value, None, false).await.map(drop)
    }

    /// Sets a key that expires after `ttl`, which must be at least one second.
    pub async fn set_with_ttl(
        &self,
        key: &str,
        value: &str,
        ttl: Duration,
    ) -> Result<(), ApiError> {
        if ttl < Duration::from_secs(1) {
            let detail = "The TTL of a key must be at least 1 second";
            return Err(ApiError::InvalidParameter(detail.into()));
        }
        self.put(key, value, Some(ttl), false).await.map(drop)
    }

    /// Sets a key unless it exists. Returns whether it was set.
    pub async fn set_if_absent(&self, key: &str, value: &str) -> Result<bool, ApiError> {
        let answer = self.put(key, value, None, true).await?;
        Ok(answer == Some(KvAnswer::Set(true)))
    }

    /// Deletes a key. Returns whether it existed.
    pub async fn delete(&self, key: &str) -> Result<bool, ApiError> {
        let (scopes, scope) = self.target.open()?;
        let key = to_key(&scopes, &scope, key)?;
        let answer = self
            .write(&scopes, &scope, KvOperation::Delete { key })
            .await?;
        Ok(answer == Some(KvAnswer::Deleted(true)))
    }

    /// Adds `by` to the value of a key, which must be a decimal 64-bit integer, and returns the sum. A missing key
    /// counts as 0.
    pub async fn increment(&self, key: &str, by: i64) -> Result<i64, ApiError> {
        let (scopes, scope) = self.target.open()?;
        let key = to_key(&scopes, &scope, key)?;
        let answer = self.write(&scopes, &scope, KvOperation::Increment { key, by });
        match answer.await? {
            Some(KvAnswer::Value(sum)) => Ok(sum),
            _ => Err(ApiError::Internal {
                what: "the store returned no sum for an increment",
                source: None,
            }),
        }
    }

    /// Returns the keys that begin with `prefix`, in byte order.
    pub async fn list(&self, prefix: &str) -> Result<Vec<String>, ApiError> {
        let (scopes, scope) = self.target.open()?;
        let parts = ScopeParts {
            keys: true,
            ..ScopeParts::default()
        };
        let view = scopes.read(&scope, &parts).await?;
        let keys = view.keys.iter().map(ScopeKey::as_str);
        let keys = keys.filter(|key| key.starts_with(prefix));
        Ok(keys.map(str::to_owned).collect())
    }

    async fn put(
        &self,
        key: &str,
        value: &str,
        ttl: Option<Duration>,
        if_absent: bool,
    ) -> Result<Option<KvAnswer>, ApiError> {
        let (scopes, scope) = self.target.open()?;
        let set = KvOperation::Set {
            key: to_key(&scopes, &scope, key)?,
            value: ScopeValue::new(value)?,
            ttl,
            if_absent,
        };
        self.write(&scopes, &scope, set).await
    }

    async fn write(
        &self,
        scopes: &ScopeService,
        scope: &ScopeId,
        operation: KvOperation,
    ) -> Result<Option<KvAnswer>, ApiError> {
        let written = scopes
            .write(scope, &[operation], self.target.options(self.options))
            .await?;
        self.target.note_stored(scope);
        let ScopeWritten { answers, .. } = written;
        Ok(answers.first().copied())
    }
}

fn to_key(scopes: &ScopeService, scope: &ScopeId, key: &str) -> Result<ScopeKey, ApiError> {
    Ok(ScopeKey::new(key, scopes.policy(scope).keys)?)
}

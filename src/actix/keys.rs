//! The keys of a scope in an app.

use std::time::Duration;

use super::ScopeTarget;
use threadkeep_domain::Precondition;
use threadkeep_domain::scope::{
    KvAnswer, KvOperation, ScopeId, ScopeKey, ScopeValue, ScopeWritten,
};
use threadkeep_service::{ScopeService, WriteOptions};
use threadkeep_store::ScopeParts;
use threadkeep_web::ApiError;

/// The keys of a thread or of another scope: text under text.
///
/// Every call goes to the store at once: a write is done when it answers, whatever becomes of the
/// response. A value has at most 32,768 bytes, all of a scope 131,072, of 256 keys. A thread's keys
/// are segments of `[A-Za-z0-9_.-]` parted by `/`, at most 128 bytes; those of sessions, tools and
/// personalities are any text of at most 1,024 bytes.
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

    /// The same, but it writes only if the scope has that version; 0: if it does not exist. Else
    /// writes fail with [`Refusal::VersionMismatch`].
    ///
    /// [`Refusal::VersionMismatch`]: threadkeep_domain::Refusal::VersionMismatch
    #[must_use]
    pub fn if_version(self, version: u64) -> Self {
        let precondition = Some(Precondition::Version(version));
        let options = WriteOptions {
            precondition,
            ..self.options
        };
        Self { options, ..self }
    }

    /// The version of the scope: one more for each write, of keys, tasks or history; 0: it does not
    /// exist.
    ///
    /// # Errors
    /// [`ApiError::Service`] or [`ApiError::Internal`], here as below: the store failed or refused,
    /// or the middleware has no scopes.
    pub async fn version(&self) -> Result<u64, ApiError> {
        let (scopes, scope) = self.target.open()?;
        let view = scopes.read(&scope, &ScopeParts::default()).await?;
        Ok(view.stamp.version)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// [`ApiError::ScopePart`] when it can be no key; [`ApiError::Service`] or
    /// [`ApiError::Internal`].
    pub async fn get(&self, key: &str) -> Result<Option<String>, ApiError> {
        let mut values = self.get_many(&[key]).await?;
        Ok(values.pop().flatten())
    }

    /// The values of several keys, at one version.
    ///
    /// # Errors
    /// As [`Self::get`].
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

    /// Sets a key, which then lives as long as the scope.
    ///
    /// # Errors
    /// [`ApiError::ScopePart`] when it can be no key or no value; [`ApiError::Service`] or
    /// [`ApiError::Internal`].
    pub async fn set(&self, key: &str, value: &str) -> Result<(), ApiError> {
        self.put(key, value, None, false).await.map(drop)
    }

    /// Sets a key for some time, of at least a second.
    ///
    /// # Errors
    /// As [`Self::set`], and [`ApiError::InvalidParameter`] of a shorter time.
    pub async fn set_with_ttl(
        &self,
        key: &str,
        value: &str,
        ttl: Duration,
    ) -> Result<(), ApiError> {
        if ttl < Duration::from_secs(1) {
            let detail = "A key lives for at least a second";
            return Err(ApiError::InvalidParameter(detail.into()));
        }
        self.put(key, value, Some(ttl), false).await.map(drop)
    }

    /// Sets a key that is not there, and says whether it was set.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub async fn set_if_absent(&self, key: &str, value: &str) -> Result<bool, ApiError> {
        let answer = self.put(key, value, None, true).await?;
        Ok(answer == Some(KvAnswer::Set(true)))
    }

    /// Deletes a key, and says whether it was there.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn delete(&self, key: &str) -> Result<bool, ApiError> {
        let (scopes, scope) = self.target.open()?;
        let key = to_key(&scopes, &scope, key)?;
        let answer = self
            .write(&scopes, &scope, KvOperation::Delete { key })
            .await?;
        Ok(answer == Some(KvAnswer::Deleted(true)))
    }

    /// Adds to the decimal integer of 64 bits under a key, and gives the sum. An absent key counts
    /// as 0.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn increment(&self, key: &str, by: i64) -> Result<i64, ApiError> {
        let (scopes, scope) = self.target.open()?;
        let key = to_key(&scopes, &scope, key)?;
        let answer = self.write(&scopes, &scope, KvOperation::Increment { key, by });
        match answer.await? {
            Some(KvAnswer::Value(sum)) => Ok(sum),
            _ => Err(ApiError::Internal {
                what: "the store did not answer an increment with a sum",
                source: None,
            }),
        }
    }

    /// The keys that begin with a text, sorted by their bytes.
    ///
    /// # Errors
    /// [`ApiError::Service`] or [`ApiError::Internal`].
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

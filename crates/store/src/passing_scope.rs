use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::held_scope::{HeldScope, check_version};
use super::{
    Answered, Clock, HistoryFrom, HistoryPage, ItemPosition, Reader, ScopeEnd, ScopeParts,
    ScopeView, Scopes, StoreError, WriteError,
};
use threadkeep_domain::scope::{ItemId, ScopeId, ScopePolicy, ScopeWrite, ScopeWritten};
use threadkeep_domain::threads::turn::check_turn;
use threadkeep_domain::{Access, Life, ThreadId};

/// An in-memory scope for a single response. Every scope id addresses this scope, and clones share it.
///
/// The scope always exists, never expires and belongs to no thread. Idempotency keys have no effect, because a repeated
/// request gets a new scope.
#[derive(Debug, Clone)]
pub struct PassingScope {
    held: Arc<Mutex<HeldScope>>,
    clock: Clock,
}

impl PassingScope {
    /// Creates an empty scope. Its keys expire by `clock`.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let held = HeldScope::new(Life::random(), clock.now_ms());
        Self {
            held: Arc::new(Mutex::new(held)),
            clock,
        }
    }

    /// Locks the scope. Ignores poisoning, because a panic while the scope is locked does not leave a partial write.
    fn held(&self) -> MutexGuard<'_, HeldScope> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Scopes for PassingScope {
    async fn read_scope(
        &self,
        _: &ScopeId,
        parts: &ScopeParts<'_>,
    ) -> Result<Option<ScopeView>, WriteError> {
        Ok(Some(self.held().view(parts, None, self.clock.now_ms())))
    }

    async fn read_history(
        &self,
        _: &ScopeId,
        _: Reader,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, WriteError> {
        let now_ms = self.clock.now_ms();
        Ok(Some(self.held().page(from, limit, now_ms)))
    }

    async fn find_item(
        &self,
        _: &ScopeId,
        _: Access,
        id: &ItemId,
    ) -> Result<Option<ItemPosition>, WriteError> {
        Ok(self.held().item_position(id))
    }

    async fn write_scope(
        &self,
        _: &ScopeId,
        write: &ScopeWrite<'_>,
    ) -> Result<ScopeWritten, WriteError> {
        let policy = ScopePolicy {
            is_made: false,
            ..*write.policy
        };
        let write = ScopeWrite {
            policy: &policy,
            ..*write
        };
        let done = self.held().write(&write, self.clock.now_ms())?;
        Ok(done.written)
    }

    async fn end_scope(&self, _: &ScopeId, end: &ScopeEnd) -> Result<Answered<bool>, WriteError> {
        check_turn(None, end.turn, self.clock.now_ms())?;
        let mut held = self.held();
        let stamp = held.stamp();
        check_version(end.expected, stamp)?;
        *held = HeldScope::new(Life::random(), self.clock.now_ms());
        Ok(Answered::fresh(stamp.version > 0))
    }

    async fn read_final_history(
        &self,
        _: &ThreadId,
        _: Option<Life>,
        _: HistoryFrom,
        _: usize,
    ) -> Result<Option<HistoryPage>, StoreError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_domain::Refusal;
    use threadkeep_domain::scope::{KeyRule, KvAnswer, KvOperation, ScopeKey, ScopePolicies};
    use threadkeep_domain::{Conditions, Fingerprint, IdempotencyKey};

    fn count(key: &str) -> KvOperation {
        let key = ScopeKey::new(key, KeyRule::Namespaced).unwrap();
        KvOperation::Increment { key, by: 1 }
    }

    #[tokio::test]
    async fn clones_share_a_scope_and_new_scopes_are_separate() {
        let scope: ScopeId = "session:any".parse().unwrap();
        let policy = ScopePolicies::DEFAULT.of(&scope);
        let print = Fingerprint([7; 16]);
        let operations = [count("k")];
        let write = ScopeWrite {
            operations: &operations,
            conditions: Conditions {
                idempotency: Some(IdempotencyKey {
                    digest: print,
                    request: print,
                }),
                ..Conditions::default()
            },
            ..ScopeWrite::new(&policy)
        };
        let [one, other] = [(); 2].map(|()| PassingScope::new(Clock::system()));

        one.write_scope(&scope, &write).await.unwrap();
        let again = one.clone().write_scope(&scope, &write).await;
        let again = again.unwrap();
        let elsewhere = other.write_scope(&scope, &write).await.unwrap();

        assert_eq!(again.answers, [KvAnswer::Value(2)]);
        assert_eq!((again.stamp.version, again.replayed), (2, false));
        assert_eq!(elsewhere.answers, [KvAnswer::Value(1)]);
    }

    #[tokio::test]
    async fn a_scope_exists_without_creation_and_an_end_empties_it() {
        let run: ScopeId = "run:6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11".parse().unwrap();
        let policy = ScopePolicies::DEFAULT.of(&run);
        let parts = ScopeParts {
            keys: true,
            ..ScopeParts::default()
        };
        let passing = PassingScope::new(Clock::system());
        let read = async || passing.read_scope(&run, &parts).await.unwrap().unwrap();

        assert_eq!(read().await.stamp.version, 0);
        let operations = [count("k")];
        let write = ScopeWrite {
            operations: &operations,
            ..ScopeWrite::new(&policy)
        };
        passing.write_scope(&run, &write).await.unwrap();
        assert_eq!(read().await.keys.len(), 1);
        let end = async |expected| {
            let end = ScopeEnd {
                expected,
                ..ScopeEnd::new(Access::All)
            };
            passing.end_scope(&run, &end).await
        };
        let unmet = end(Some(7)).await;
        assert!(matches!(
            unmet,
            Err(WriteError::Refused(Refusal::VersionMismatch { .. }))
        ));
        assert!(end(Some(1)).await.unwrap().answer);

        assert!(read().await.keys.is_empty());
        assert!(!end(None).await.unwrap().answer);
    }
}

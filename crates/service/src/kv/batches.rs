//! Several puts in one request.

use futures_util::future::join_all;

use super::namespaces::{EntryDraft, NamespaceService};
use crate::ServiceError;
use threadkeep_domain::{EntryKey, IdempotencyKey, Namespace, Precondition};
use threadkeep_store::{Answered, EntryTerms, Put};

/// One of several puts.
#[derive(Debug, Clone)]
pub struct BatchPut {
    /// The key of the entry, which no other of the puts has.
    pub key: EntryKey,
    /// The entry.
    pub draft: EntryDraft,
    /// Whether it is put only if its key has no entry.
    pub if_absent: bool,
}

impl NamespaceService {
    /// Puts several entries, each whole or not at all: one result for each, and whether all that was put had been put
    /// before under the same idempotency key. If the request ends halfway, a repeat with that key puts the rest, and
    /// nothing twice.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] with [`Refusal::IdempotencyKeyReused`] or [`Refusal::TooManyIdempotencyKeys`], or
    /// [`ServiceError::Store`] when the store did none of the puts.
    ///
    /// [`Refusal::IdempotencyKeyReused`]: threadkeep_domain::Refusal::IdempotencyKeyReused
    /// [`Refusal::TooManyIdempotencyKeys`]: threadkeep_domain::Refusal::TooManyIdempotencyKeys
    pub async fn put_many(
        &self,
        namespace: &Namespace,
        puts: Vec<BatchPut>,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Answered<Vec<Result<Put, ServiceError>>>, ServiceError> {
        let mut replayed = match idempotency {
            Some(key) => self.namespaces.begin_writes(namespace, key).await?,
            None => false,
        };
        let puts = puts.into_iter().map(async |put| {
            let terms = EntryTerms {
                precondition: put.if_absent.then_some(Precondition::Version(0)),
                // it is remembered with the entry, of which the request has one put
                idempotency,
                remembers_mismatch: true,
            };
            self.put(namespace, &put.key, put.draft, terms).await
        });
        // at once, since they share the time of the request
        let mut puts = join_all(puts).await;
        let failed = |put: &Result<_, _>| matches!(put, Err(ServiceError::Store(_)));
        if puts.iter().all(failed)
            && let Some(Err(error)) = puts.pop()
        {
            return Err(error);
        }
        replayed &= puts.iter().flatten().all(|put| put.replayed);
        Ok(Answered {
            answer: puts.into_iter().map(|put| Ok(put?.answer)).collect(),
            replayed,
        })
    }
}

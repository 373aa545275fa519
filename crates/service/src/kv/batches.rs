use futures_util::future::join_all;

use super::namespaces::{EntryDraft, NamespaceService};
use crate::ServiceError;
use threadkeep_domain::{EntryKey, IdempotencyKey, Namespace, Precondition};
use threadkeep_store::{Answered, EntryTerms, Put};

#[derive(Debug, Clone)]
pub struct BatchPut {
    /// The key, unique among the puts of the request.
    pub key: EntryKey,
    pub draft: EntryDraft,
    /// Whether to put the entry only if the key has none.
    pub if_absent: bool,
}

impl NamespaceService {
    /// Puts several entries, each atomically. Returns one result per entry, and whether an earlier request with the same
    /// idempotency key had already put all of them. If a request ends halfway, a repeat with its key puts the rest and
    /// nothing twice.
    ///
    /// # Errors
    /// [`ServiceError::Store`] only if all puts failed.
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
                // the store remembers the key with the entry, and a request has one put per entry
                idempotency,
                remembers_mismatch: true,
            };
            self.put(namespace, &put.key, put.draft, terms).await
        });
        // concurrently, since the puts share the time limit of the request
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

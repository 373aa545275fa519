use futures_util::future::join_all;

use super::namespaces::{EntryDraft, NamespaceService};
use crate::ServiceError;
use threadkeep_domain::{EntryKey, IdempotencyKey, Namespace, Precondition};
use threadkeep_store::{Answered, EntryTerms, Put};

#[derive(Debug, Clone)]
pub struct BatchPut {
    /// Must be unique among the puts of the request.
    pub key: EntryKey,
    pub draft: EntryDraft,
    /// True to put the entry only if none exists under `key`.
    pub if_absent: bool,
}

impl NamespaceService {
    /// Puts several entries, each atomically. Returns one result per entry, and whether an earlier request with the
    /// same idempotency key had already put all of them. If a request is interrupted, repeat it with the same
    /// idempotency key: entries that were already put are not put again.
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
                // all puts can share the idempotency key: the store remembers it per entry, and a request puts each
                // entry only once
                idempotency,
                remembers_mismatch: true,
            };
            self.put(namespace, &put.key, put.draft, terms).await
        });
        // the puts run concurrently, because they share the time limit of the request
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

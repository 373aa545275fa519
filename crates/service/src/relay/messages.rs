use uuid::Uuid;

use super::sessions::{Session, SessionService, unchanged};
use crate::attempts::in_time;
use crate::{Creation, ServiceError};
use threadkeep_domain::scope::{HistoryItem, ScopeWrite, StoredItem};
use threadkeep_domain::{Json, Refusal};
use threadkeep_store::{HistoryFrom, ScopeParts, StoreError};

/// Snapshot of a session and its messages.
#[derive(Debug, Clone)]
pub struct Conversation {
    pub session: Session,
    pub messages: Vec<StoredItem>,
}

/// Number of messages to read per call to the store.
const BATCH: usize = 500;
/// Maximum number of attempts to read a session's messages. An attempt fails if a client clears the session meanwhile.
const ATTEMPTS: usize = 5;

impl SessionService {
    /// Adds a message, which must be a JSON object. A repeated request returns the message that was added first. A
    /// repeated request with a different value fails with [`Refusal::ItemIdReused`].
    pub async fn add_message(
        &self,
        id: Uuid,
        making: &Creation,
        value: Json,
    ) -> Result<StoredItem, ServiceError> {
        let scopes = &self.0.scopes;
        let scope = self.0.scope(id);
        let policy = scopes.policy(&scope);
        let item = HistoryItem {
            id: making
                .id
                .to_string()
                .parse()
                .expect("a UUID is visible ASCII"),
            value,
        };
        let items = [item];
        let added = scopes.until_unchanged(async || {
            let view = scopes.read(&scope, &ScopeParts::RECORD).await?;
            let record = unchanged(&view)?;
            let write = ScopeWrite {
                record: Some(&record),
                history: &items,
                ..ScopeWrite::new(&policy)
            };
            scopes.commit(&scope, &write).await
        });
        let read_back = async {
            let added = added.await?;
            let added = added.appended.first();
            let added = added.ok_or(StoreError::Corrupt("an item has no position"))?;
            let before = HistoryFrom::After(added.seq.saturating_sub(1));
            let page = scopes.history(&scope, before, 1).await?;
            // the message is missing if the session was cleared meanwhile
            let stored = page
                .items
                .into_iter()
                .find(|stored| stored.seq == added.seq);
            stored.ok_or(ServiceError::Refused(Refusal::ScopeNotFound))
        };
        in_time(scopes.timeout, read_back).await
    }

    /// Returns a session with all its messages: up to 8 MiB with the default limits.
    pub async fn conversation(&self, id: Uuid) -> Result<Conversation, ServiceError> {
        let reading = async {
            for _ in 0..ATTEMPTS {
                let session = self.get(id).await?;
                if let Some(messages) = self.messages(id, session.message_count).await? {
                    return Ok(Conversation { session, messages });
                }
            }
            Err(Refusal::Changed.into())
        };
        in_time(self.0.scopes.timeout, reading).await
    }

    /// Reads `count` messages. Returns `None` if the session has changed since the messages were counted.
    async fn messages(
        &self,
        id: Uuid,
        count: u64,
    ) -> Result<Option<Vec<StoredItem>>, ServiceError> {
        let scope = self.0.scope(id);
        let mut messages: Vec<StoredItem> = Vec::new();
        while (messages.len() as u64) < count {
            let after = messages.last().map_or(0, |last| last.seq);
            let missing = usize::try_from(count).unwrap_or(usize::MAX) - messages.len();
            let from = HistoryFrom::After(after);
            let page = self.0.scopes.history(&scope, from, missing.min(BATCH));
            let page = page.await?;
            let first = messages.first().or(page.items.first());
            let is_first = first.is_some_and(|first| first.seq == page.summary.first_seq);
            if page.items.is_empty() || !is_first {
                return Ok(None);
            }
            messages.extend(page.items);
        }
        Ok(Some(messages))
    }
}

//! Coordinates the signing key, so that no replica signs with a key that other replicas cannot verify.

mod agreement;
mod card;
mod status;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Events, Outage, reaper};
use agreement::{Agreement, Situation, Verdict};
use card::{Card, digest_of};
pub use status::SigningStatus;
use threadkeep_domain::{KeyPrint, KeyRing};
use threadkeep_store::{Announcements, Backend, StoreError};

/// Interval between announcements. Decisions about the signing key are delayed by up to this time.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(2);
/// Lifetime of a card, the announcement of a replica's keys. Longer than a replica's lease, so that a crashed replica
/// does not look like a live replica without a card.
const CARD_LIFETIME: Duration = Duration::from_secs(15);

impl Events {
    /// Announces the signing keys of this replica at intervals. The chosen key of the ring signs only while all
    /// replicas have that key.
    ///
    /// A new key starts to sign after all replicas have had the key for `wait`. Until then, the previous key signs.
    /// Replicas that are down for less than `wait` are therefore taken into account.
    ///
    /// Call this method once in every program that issues or verifies ids with this store. A program that does not
    /// announce its keys prevents the other programs from changing the signing key. Fails if the ring has several keys
    /// and the store is unavailable.
    #[doc(hidden)]
    pub async fn share_signing_keys(
        &self,
        ring: &KeyRing,
        wait: Duration,
    ) -> Result<Arc<SigningStatus>, StoreError> {
        let status = Arc::<SigningStatus>::default();
        let mut sharing = Sharing {
            backend: Arc::clone(self.backend()),
            holder: Arc::clone(self.holder()),
            ring: ring.clone(),
            agreement: Agreement::new(ring.clone(), wait),
            status: Arc::clone(&status),
        };
        match sharing.begin().await {
            Ok(()) => {}
            // a store that rejects writes must not prevent reads
            Err(error) if ring.keys().len() == 1 => {
                tracing::warn!(%error, "cannot announce the signing key to other replicas yet");
            }
            Err(error) => return Err(error),
        }
        self.spawn_until_stopped(sharing.run());
        Ok(status)
    }
}

struct Sharing {
    backend: Arc<dyn Backend>,
    holder: Arc<str>,
    ring: KeyRing,
    agreement: Agreement,
    status: Arc<SigningStatus>,
}

impl Sharing {
    async fn run(mut self) {
        let mut outage = Outage::new("announcing the signing keys to other replicas");
        loop {
            sleep(ANNOUNCE_INTERVAL).await;
            match self.exchange_cards().await {
                Ok(()) => outage.record_success(),
                Err(error) => {
                    // other replicas may have started and stopped meanwhile
                    self.agreement.forget();
                    sleep(outage.record_failure(&error)).await;
                }
            }
        }
    }

    async fn begin(&mut self) -> Result<(), StoreError> {
        self.resume().await?;
        self.exchange_cards().await
    }

    /// Resumes signing with the last signing key, if the ring contains it. Without this step, a new key could sign too
    /// early if all replicas had stopped and the first replica to restart found no others.
    async fn resume(&mut self) -> Result<(), StoreError> {
        let requested_at = Instant::now();
        let reply = self.announce(&Card::undecided(&self.ring), None).await?;
        let note = reply
            .note
            .as_deref()
            .and_then(|note| str::from_utf8(note).ok());
        if let Some(note) = note {
            self.agreement.resume(digest_of(note));
        }
        self.agreement.decide(&cards(&reply), requested_at);
        Ok(())
    }

    /// Announces the keys, reads the cards of the other replicas, and decides which key signs. Records the signing key
    /// for the next start only if all replicas have that key. Otherwise, the record could name a key that only a
    /// misconfigured replica has. The next start would ignore such a record and sign with the chosen key immediately.
    async fn exchange_cards(&mut self) -> Result<(), StoreError> {
        let requested_at = Instant::now();
        let card = Card::of(&self.ring);
        let is_shared = self.agreement.is_shared(requested_at);
        let note = card.signs.as_deref().filter(|_| is_shared);
        let reply = self.announce(&card, note).await?;
        let before = self.status.verdict();
        let verdict = self.agreement.decide(&cards(&reply), requested_at);
        if verdict != before {
            self.log_verdict(&verdict);
        }
        self.status.set(verdict);
        Ok(())
    }

    async fn announce(
        &self,
        card: &Card,
        in_use: Option<&str>,
    ) -> Result<Announcements, StoreError> {
        let pool = reaper::pool().name;
        let (card, note) = (card.to_bytes(), in_use.map(str::as_bytes));
        let reply = self
            .backend
            .announce(&pool, &self.holder, &card, note, CARD_LIFETIME);
        reply.await
    }

    fn print(&self, index: usize) -> KeyPrint {
        self.ring.keys()[index].print()
    }

    fn log_verdict(&self, verdict: &Verdict) {
        let (chosen, signing) = (self.ring.chosen(), self.ring.signing());
        let name = |index| self.print(index).name;
        let (chosen, signs) = (name(chosen), name(signing));
        let (chosen, signs) = (&*chosen, &*signs);
        let Verdict {
            without, silent, ..
        } = *verdict;
        match verdict.situation {
            Situation::Agreed => {
                tracing::info!(signs, "all replicas have the signing key");
            }
            Situation::Settling => tracing::info!(
                chosen,
                signs,
                "all replicas have the chosen signing key; it signs when that has been so for \
                 `signing_key_wait_seconds`"
            ),
            Situation::Withheld => tracing::warn!(
                chosen,
                signs,
                replicas.without = without,
                replicas.silent = silent,
                "signing key withheld: some replicas do not have it yet"
            ),
            Situation::Unknown => tracing::warn!(
                chosen,
                signs,
                replicas.silent = silent,
                "signing key unchanged: some replicas do not report their keys"
            ),
            Situation::NoCommonKey => tracing::warn!(
                chosen,
                signs,
                replicas.without = without,
                replicas.silent = silent,
                "no signing key is known to be on all replicas: some may lose the conversations that \
                 this one begins"
            ),
        }
        if !verdict.foreign.is_empty() {
            tracing::warn!(
                missing = verdict.foreign.join(","),
                "other replicas sign with a signing key that this one lacks: it loses their \
                 conversations until `signing_keys` has it"
            );
        }
    }
}

fn cards(reply: &Announcements) -> Vec<Option<Card>> {
    let announcements = reply.announcements.iter();
    announcements
        .map(|card| card.as_deref().and_then(Card::read))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_domain::SigningKey;
    use threadkeep_store::{Clock, Leases as _};
    use threadkeep_store_memory::MemoryStore;

    fn ring(names: &[&str]) -> KeyRing {
        let key = |name: &&str| SigningKey::new(*name, name.as_bytes());
        KeyRing::new(names.iter().map(key).collect()).unwrap()
    }

    fn replica(store: &MemoryStore, holder: &str, names: &[&str]) -> Sharing {
        let ring = ring(names);
        Sharing {
            backend: Arc::new(store.clone()),
            holder: holder.into(),
            agreement: Agreement::new(ring.clone(), Duration::from_secs(600)),
            ring,
            status: Arc::default(),
        }
    }

    #[tokio::test]
    async fn a_misconfigured_replica_does_not_record_its_signing_key() {
        let store = MemoryStore::new(Clock::system());
        let mut former = replica(&store, "former", &["old"]);
        former.begin().await.unwrap();
        let mut stranger = replica(&store, "stranger", &["wrong"]);
        stranger.begin().await.unwrap();
        stranger.exchange_cards().await.unwrap();
        let pool = reaper::pool().name;
        for holder in ["former", "stranger"] {
            store.release(&pool, holder).await.unwrap();
        }

        let mut next = replica(&store, "next", &["new", "old"]);
        next.begin().await.unwrap();

        assert_eq!(&*next.print(next.ring.signing()).name, "old");
    }
}

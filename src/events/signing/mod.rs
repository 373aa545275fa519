//! Which key signs: the replicas tell each other which keys they have, so that none signs with one
//! that another cannot verify.

mod agreement;
mod card;
mod status;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep};

use super::outage::Outage;
use super::{Events, reaper};
use crate::domain::{KeyPrint, KeyRing};
use crate::store::{Backend, StoreError};
use agreement::{Agreement, Situation, Verdict};
use card::{Card, digest_of};
pub use status::SigningStatus;

/// How often a replica tells the others. A key that was held back signs that much later at most.
const EVERY: Duration = Duration::from_secs(2);
/// How long that counts: longer than a lease of the pool, so that a replica which has crashed does not
/// look like one that says nothing.
const LASTS: Duration = Duration::from_secs(15);

/// The record of the key that signed last, for a fleet that was stopped as a whole.
const KIND: &str = "signing";
const NAME: &str = "in_use";

impl Events {
    /// Tells the other replicas which signing keys this one has, now and from now on, and has the
    /// ring's chosen key sign only while all of them have it.
    ///
    /// A key that is not in use yet begins to sign when no replica has lacked it for `wait`. So a
    /// replica that is away for less still counts. Until then the key that was in use signs on.
    ///
    /// Every program that hands out or verifies ids over this store should call this once: one that
    /// says nothing about its keys keeps the others from changing theirs.
    ///
    /// # Errors
    /// [`StoreError`] when the other replicas cannot be asked.
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
            in_use: None,
        };
        sharing.resume().await?;
        sharing.look().await?;
        self.spawn_until_stopped(sharing.run());
        Ok(status)
    }
}

/// What one replica does for it.
struct Sharing {
    backend: Arc<dyn Backend>,
    holder: Arc<str>,
    ring: KeyRing,
    agreement: Agreement,
    status: Arc<SigningStatus>,
    /// The record as this replica knows it.
    in_use: Option<Bytes>,
}

impl Sharing {
    async fn run(mut self) {
        let mut outage =
            Outage::new("replicas cannot tell each other which signing keys they have");
        loop {
            sleep(EVERY).await;
            match self.look().await {
                Ok(()) => outage.is_over(),
                Err(error) => {
                    // others may have come and gone meanwhile
                    self.agreement.forget();
                    sleep(outage.goes_on(&error)).await;
                }
            }
        }
    }

    /// Goes on with the key that was in use, if it is still there.
    async fn resume(&mut self) -> Result<(), StoreError> {
        self.in_use = self.recorded().await?;
        let recorded = self
            .in_use
            .as_deref()
            .and_then(|text| str::from_utf8(text).ok());
        if let Some(recorded) = recorded {
            self.agreement.resume(digest_of(recorded));
        }
        Ok(())
    }

    /// Tells the others, hears them, and signs as follows from that.
    async fn look(&mut self) -> Result<(), StoreError> {
        let pool = reaper::pool().name;
        let words = Card::of(&self.ring).to_bytes();
        let said = self.backend.introduce(&pool, &self.holder, &words, LASTS);
        let said = said.await?;
        let cards: Vec<_> = said
            .iter()
            .map(|words| words.as_deref().and_then(Card::read))
            .collect();
        let before = self.status.verdict();
        let verdict = self.agreement.judge(&cards, Instant::now());
        if verdict != before {
            self.tell(&verdict);
        }
        self.status.set(verdict);
        self.record().await
    }

    /// Keeps which key signs. When two replicas change it at once, either is right: both keys are held by
    /// all.
    async fn record(&mut self) -> Result<(), StoreError> {
        let signing = self.print(self.ring.signing()).to_string();
        if self.in_use.as_deref() == Some(signing.as_bytes()) {
            return Ok(());
        }
        let expected = self.recorded().await?;
        let new = signing.as_bytes();
        let put = self
            .backend
            .put_record(KIND, NAME, expected.as_deref(), new, 1);
        if put.await? {
            self.in_use = Some(signing.into());
        }
        Ok(())
    }

    async fn recorded(&self) -> Result<Option<Bytes>, StoreError> {
        let records = self.backend.records(KIND).await?;
        let record = records.into_iter().find(|(name, _)| name == NAME);
        Ok(record.map(|(_, record)| record))
    }

    fn print(&self, place: usize) -> KeyPrint {
        self.ring.keys()[place].print()
    }

    fn tell(&self, verdict: &Verdict) {
        let (chosen, signing) = (self.ring.chosen(), self.ring.signing());
        let name = |place| self.print(place).name;
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
                "the chosen signing key is held back, since some replicas do not have it"
            ),
            Situation::Apart => tracing::warn!(
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

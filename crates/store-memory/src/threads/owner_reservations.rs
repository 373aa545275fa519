use std::collections::BTreeMap;
use std::time::Duration;

use crate::budget::Part;
use threadkeep_domain::OwnerTag;
use threadkeep_domain::heap::{self, Heap};
use threadkeep_store::{ReservationToken, millis};

/// Reservations for new threads, by owner, with expiry times. Each request releases its own reservation.
#[derive(Debug, Default)]
pub(crate) struct OwnerReservations(BTreeMap<(OwnerTag, ReservationToken), u64>);

impl OwnerReservations {
    /// Reserves a thread for an owner. Returns how many other reservations the owner has.
    pub(crate) fn reserve(
        &mut self,
        owner: OwnerTag,
        token: ReservationToken,
        ttl: Duration,
        now_ms: u64,
    ) -> u64 {
        let first = ReservationToken([0; 16]);
        let last = ReservationToken([u8::MAX; 16]);
        let expired = self
            .0
            .extract_if((owner, first)..=(owner, last), |_, ends_ms| {
                *ends_ms <= now_ms
            });
        expired.for_each(drop);
        let before = self.0.range((owner, first)..=(owner, last)).count() as u64;
        self.0.insert((owner, token), now_ms + millis(ttl));
        before
    }

    pub(crate) fn release(&mut self, owner: OwnerTag, token: ReservationToken) {
        self.0.remove(&(owner, token));
    }
}

impl Heap for OwnerReservations {
    fn heap_bytes(&self) -> u64 {
        heap::tree::<((OwnerTag, ReservationToken), u64)>(self.0.len())
    }
}

impl Part for OwnerReservations {}

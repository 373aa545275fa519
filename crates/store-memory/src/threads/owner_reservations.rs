use std::collections::BTreeMap;
use std::time::Duration;

use crate::budget::Part;
use threadkeep_domain::OwnerTag;
use threadkeep_domain::heap::{self, Heap};
use threadkeep_store::{PlaceToken, millis};

/// Room reserved for new threads, by owner. A reservation is released within one request, or expires.
#[derive(Debug, Default)]
pub(crate) struct OwnerReservations(BTreeMap<(OwnerTag, PlaceToken), u64>);

impl OwnerReservations {
    /// Reserves room for a thread. Returns how many other reservations the owner has.
    pub(crate) fn reserve(
        &mut self,
        owner: OwnerTag,
        place: PlaceToken,
        lasts: Duration,
        now_ms: u64,
    ) -> u64 {
        let first = PlaceToken([0; 16]);
        let last = PlaceToken([u8::MAX; 16]);
        let its = self
            .0
            .extract_if((owner, first)..=(owner, last), |_, ends_ms| {
                *ends_ms <= now_ms
            });
        its.for_each(drop);
        let before = self.0.range((owner, first)..=(owner, last)).count() as u64;
        self.0.insert((owner, place), now_ms + millis(lasts));
        before
    }

    pub(crate) fn release(&mut self, owner: OwnerTag, place: PlaceToken) {
        self.0.remove(&(owner, place));
    }
}

impl Heap for OwnerReservations {
    fn heap_bytes(&self) -> u64 {
        heap::tree::<((OwnerTag, PlaceToken), u64)>(self.0.len())
    }
}

impl Part for OwnerReservations {}

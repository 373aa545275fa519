use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A slot that holds events of this total size in bytes stops reading the log. Without this limit, a failing endpoint
/// could hold 80 MiB per slot: about 1,250 events, each with 64 KiB of key names.
pub(super) const SLOT_BYTES_MAX: u64 = 8 * 1_024 * 1_024;

/// If all slots together hold events of this total size in bytes, each slot is restricted to an equal share, so that
/// failing endpoints do not stop the delivery to other endpoints. Slots that start late or read concurrently can bring
/// the total to twice this limit.
const REPLICA_BYTES_MAX: u64 = 64 * 1_024 * 1_024;

#[derive(Debug, Clone, Default)]
pub(super) struct ReplicaBytes(Arc<Replica>);

#[derive(Debug, Default)]
struct Replica {
    bytes: AtomicU64,
    slots: AtomicU64,
}

/// The number of bytes that one slot holds. The replica's total includes these bytes until this value is dropped.
#[derive(Debug)]
pub(super) struct SlotBytes {
    bytes: u64,
    replica: ReplicaBytes,
}

impl ReplicaBytes {
    fn get(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    fn share(&self) -> u64 {
        REPLICA_BYTES_MAX / self.0.slots.load(Ordering::Relaxed).max(1)
    }
}

impl SlotBytes {
    pub(super) fn of(replica: ReplicaBytes) -> Self {
        replica.0.slots.fetch_add(1, Ordering::Relaxed);
        Self { bytes: 0, replica }
    }

    pub(super) fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.replica.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn subtract(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.replica.0.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns how many more events of `event_bytes` fit. A slot below its share can always hold one more event;
    /// otherwise, the slot could wait for other slots forever.
    pub(super) fn room(&self, event_bytes: u64) -> usize {
        let of_slot = SLOT_BYTES_MAX.saturating_sub(self.bytes);
        let of_replica = REPLICA_BYTES_MAX.saturating_sub(self.replica.get());
        let of_share = self.replica.share().saturating_sub(self.bytes);
        let room = of_slot.min(of_replica.max(of_share)) / event_bytes;
        let must_fit_one = self.bytes == 0 || of_share > 0 && of_slot >= event_bytes;
        room.max(u64::from(must_fit_one)) as usize
    }

    #[cfg(test)]
    pub(super) fn get(&self) -> u64 {
        self.bytes
    }
}

impl Drop for SlotBytes {
    fn drop(&mut self) {
        self.subtract(self.bytes);
        self.replica.0.slots.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: u64 = 70_000;

    fn fill(slot: &mut SlotBytes) {
        while slot.room(EVENT) > 0 {
            slot.add(EVENT);
        }
    }

    #[test]
    fn slots_share_the_byte_limit_of_a_replica() {
        let replica = ReplicaBytes::default();
        let mut slots: Vec<_> = (0..400).map(|_| SlotBytes::of(replica.clone())).collect();

        for slot in &mut slots {
            fill(slot);
            assert!(slot.bytes > 0 && slot.bytes <= SLOT_BYTES_MAX);
        }

        assert!(replica.get() <= 2 * (REPLICA_BYTES_MAX + 400 * EVENT));
        slots.truncate(1);
        assert_eq!(replica.get(), slots[0].bytes);
        assert!(SlotBytes::of(replica.clone()).room(EVENT) > 100);
        drop(slots);
        assert_eq!(replica.get(), 0);
    }

    #[test]
    fn full_slots_do_not_stop_a_slot_that_holds_little() {
        let replica = ReplicaBytes::default();
        let mut failing: Vec<_> = (0..40).map(|_| SlotBytes::of(replica.clone())).collect();
        failing.iter_mut().for_each(fill);
        let mut small = SlotBytes::of(replica.clone());
        assert!(replica.get() >= REPLICA_BYTES_MAX);

        // this slot holds one event, which is retried later
        small.add(EVENT);

        assert!(small.room(EVENT) > 0);
    }
}

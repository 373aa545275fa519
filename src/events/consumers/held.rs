//! How much memory events take that wait for their delivery.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that the events of one slot take, at most before it reads no more of the log. An event may name
/// 64 KiB of keys, so their number alone would let an endpoint that fails hold 80 MiB for each slot.
pub(super) const SLOT_MAX_BYTES: u64 = 8 * 1_024 * 1_024;

/// Bytes that those of all slots of a replica take, at most before none with an event reads more. There may be
/// a hundred endpoints of four slots. Slots that read at the same moment may exceed it by what is new then.
const REPLICA_MAX_BYTES: u64 = 64 * 1_024 * 1_024;

/// The bytes of all slots of a replica.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplicaBytes(Arc<AtomicU64>);

/// The bytes of one slot, which count for the replica too until this is dropped.
#[derive(Debug)]
pub(super) struct SlotBytes {
    bytes: u64,
    replica: ReplicaBytes,
}

impl ReplicaBytes {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl SlotBytes {
    pub(super) fn of(replica: ReplicaBytes) -> Self {
        Self { bytes: 0, replica }
    }

    pub(super) fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.replica.0.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn subtract(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.replica.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// How many more events of that size there is room for. A slot without any has room for one, whatever
    /// others have, or it might wait for them forever.
    pub(super) fn room(&self, event_bytes: u64) -> usize {
        let of_slot = SLOT_MAX_BYTES.saturating_sub(self.bytes);
        let of_replica = REPLICA_MAX_BYTES.saturating_sub(self.replica.get());
        let room = of_slot.min(of_replica) / event_bytes;
        room.max(u64::from(self.bytes == 0)) as usize
    }

    #[cfg(test)]
    pub(super) fn get(&self) -> u64 {
        self.bytes
    }
}

impl Drop for SlotBytes {
    fn drop(&mut self) {
        self.subtract(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: u64 = 70_000;

    #[test]
    fn slots_share_what_a_replica_has_and_each_gets_one_event() {
        let replica = ReplicaBytes::default();
        let mut slots: Vec<_> = (0..400).map(|_| SlotBytes::of(replica.clone())).collect();

        for slot in &mut slots {
            while slot.room(EVENT) > 0 {
                slot.add(EVENT);
            }
            assert!(slot.bytes > 0 && slot.bytes <= SLOT_MAX_BYTES);
        }

        assert!(replica.get() <= REPLICA_MAX_BYTES + 400 * EVENT);
        slots.truncate(1);
        assert_eq!(replica.get(), slots[0].bytes);
        assert!(SlotBytes::of(replica.clone()).room(EVENT) > 100);
        drop(slots);
        assert_eq!(replica.get(), 0);
    }
}

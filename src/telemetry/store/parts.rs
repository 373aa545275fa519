//! Measures the operations of the store, trait by trait.
//!
//! If a method is missing here, the compiler reports it, or Clippy if the trait has a default for the method. No method
//! waits for an event, so the duration of a call is the latency of the store.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::broadcast;

use super::ObservedStore;
use super::call::{Call, Families};
use super::uses;
use threadkeep_domain::effects::{
    BeginEffect, Effect, EffectId, EffectState, SettleEffect, Settled,
};
use threadkeep_domain::scope::{
    Compacted, Compaction, ItemId, ScopeId, ScopeWrite, ScopeWritten, Segment,
};
use threadkeep_domain::{
    Access, CheckpointName, Completed, Conditions, EntryKey, Event, EventId, Fork, IdempotencyKey,
    Image, Import, Key, Life, Namespace, OwnerTag, Position, Rate, RateLimited, RateName, Release,
    ResponseId, Slice, Stamp, TakeTurn, Thread, ThreadId, ThreadPolicy, TurnGranted, TurnState,
    TurnToken, Write, Written,
};
use threadkeep_stats::Use;
use threadkeep_store::{
    Announcements, Answered, Archive, ArchivePage, ArchivePosition, Archives, BeginResponse, Begun,
    CacheUse, Checkpoint, CheckpointDeleted, CheckpointHead, CheckpointSaved, Checkpoints, Counted,
    Destroy, Destroyed, Due, EffectLedger, EndResponse, EndWrite, Entry, EntryHead, EntryPage,
    EntryRange, EntryTerms, Erased, ErasedLife, Erasure, EventLog, Found, Heads, HistoryFrom,
    HistoryPage, HistoryPreview, Holding, Images, Imported, ItemPosition, JournalEntry, Journaled,
    Leases, Ledger, LedgerChange, LedgerSignals, Ledgers, Links, Listing, Listings, MemoryUse,
    NamespaceChange, NamespacePage, NamespacePosition, NamespaceRecord, Namespaces, NewEntry,
    Originals, OwnedPosition, OwnerUsage, Owners, Part, PendingEvents, Put, Rates, Reader, Reading,
    Reaped, Registry, ReservationToken, ResponseEvents, ResponseView, Responses, Rotate, Rotated,
    ScopeEnd, ScopeParts, ScopeView, Scopes, StateBody, Store, StoreError, ThreadOrder, ThreadPage,
    Turns, Upkeep, Usage, Watched, Whole, WriteError,
};
use threadkeep_trace as trace;
use threadkeep_trace::Phase;

/// Implements a trait of the store. Each listed method calls the back end, and is measured under its own name, with the
/// name of the part as a label.
///
/// `=> count` also passes the result to the metrics' method `count`. `, used(id) if is_use` also records how the call
/// used a thread. The function `used` in [`uses`] computes this use from the listed arguments and the result. Methods
/// in the second pair of braces return immediately, so they are not measured.
macro_rules! measured {
    ($trait:ident as $part:ident {
        $($method:ident($($name:ident: $kind:ty),* $(,)?) -> $answer:ty $(=> $count:ident)?
            $(, $used:ident($($of:ident),+) $(if $is_use:expr)?)?;)*
    } $({ $($unmeasured:item)* })?) => {
        pub(super) mod $part {
            use super::{Call, Families};

            #[derive(Debug)]
            pub(in super::super) struct Calls {
                $(pub(super) $method: Call,)*
            }

            impl Calls {
                pub(in super::super) fn new(families: &Families) -> Self {
                    Self {
                        $($method: families.call(stringify!($method), stringify!($part)),)*
                    }
                }
            }
        }

        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl $trait for ObservedStore {
            $(
                async fn $method(&self, $($name: $kind),*) -> $answer {
                    let spending = trace::spend(Phase::Store);
                    let start = Instant::now();
                    let answer = $trait::$method(&*self.backend, $($name),*).await;
                    let used: Option<Use<'_>> = None$(.or_else(|| uses::$used($($of),+, answer.as_ref().ok()?))$(.filter(|_| $is_use))?)?;
                    self.metrics.$part.$method.observe(start, &answer, used, self, spending);
                    $(self.metrics.$count(&answer);)?
                    answer
                }
            )*
            $($($unmeasured)*)?
        }
    };
}

measured! {
    Store as threads {
        get_state(id: &ThreadId, reader: Reader) -> Result<Option<Found<Bytes>>, WriteError>, state(id) if reader.touch;
        get_state_body(id: &ThreadId, reader: Reader)
            -> Result<Option<Found<StateBody>>, WriteError>,
            state_body(id) if reader.touch;
        get_content(id: &ThreadId, reader: Reader) -> Result<Option<Found<Whole>>, WriteError>, whole(id) if reader.touch;
        get_values(id: &ThreadId, reader: Reader, keys: &[Key])
            -> Result<Option<Found<Vec<Option<Bytes>>>>, WriteError>,
            values(id) if reader.touch;
        get_value(id: &ThreadId, reader: Reader, key: &Key, slice: Option<Slice>)
            -> Result<Option<Found<Option<Part>>>, WriteError>,
            value(id) if reader.touch;
        get_stamp(id: &ThreadId, reader: Reader)
            -> Result<Option<Stamp>, WriteError>,
            without_values(id) if reader.touch;
        find_key(id: &ThreadId, reader: Reader, key: &Key)
            -> Result<Option<Found<bool>>, WriteError>,
            without_values(id) if reader.touch;
        get_keys(id: &ThreadId, reader: Reader)
            -> Result<Option<Found<Vec<Key>>>, WriteError>,
            without_values(id) if reader.touch;
        get_thread(id: &ThreadId, reader: Reader) -> Result<Option<Thread>, WriteError>, thread(id) if reader.touch;
        write(id: &ThreadId, write: &Write<'_>) -> Result<Written, WriteError> => written, written(id, write);
        destroy(id: &ThreadId, destroy: &Destroy) -> Result<Destroyed, WriteError> => destroyed, destroyed(id);
        rotate(id: &ThreadId, rotate: &Rotate) -> Result<Rotated, WriteError>, rotated(id);
        ping() -> Result<(), StoreError>;
    } {
        fn keep_compressed(&self, id: &ThreadId, text: &Bytes, gzip: Bytes) {
            self.backend.keep_compressed(id, text, gzip);
        }
        fn links(&self) -> Option<Links> { self.backend.links() }
        fn unreadable(&self) -> u64 { self.backend.unreadable() }
        fn cache_use(&self) -> Option<CacheUse> { self.backend.cache_use() }
        fn memory_use(&self) -> Option<MemoryUse> { self.backend.memory_use() }
    }
}

measured! {
    EventLog as log {
        read_log(after: &[(u16, Position)], limit: usize) -> Result<Vec<Vec<Event>>, StoreError>;
        log_heads() -> Result<Heads, StoreError>;
        log_horizons(buckets: &[u16]) -> Result<Vec<Position>, StoreError>;
        log_completed(id: &ThreadId, completed: &Completed) -> Result<(), StoreError>;
        watch(ids: &[ThreadId], ttl: Duration) -> Result<Vec<Watched>, StoreError>;
        values_at(id: &ThreadId, at: Stamp, keys: &[Key], max_bytes: u64)
            -> Result<Option<Vec<Option<Bytes>>>, StoreError>;
        watch_all(ttl: Duration) -> Result<u64, StoreError>;
    } {
        fn buckets(&self) -> u16 { self.backend.buckets() }
        fn bucket_of(&self, id: &ThreadId) -> u16 { self.backend.bucket_of(id) }
    }
}

measured! {
    Archives as archives {
        get_archive(id: &ThreadId, life: Option<Life>) -> Result<Option<Archive>, StoreError>;
        get_final(id: &ThreadId, life: Life) -> Result<Option<Archive>, StoreError>;
        list_archives(after: &ArchivePosition, limit: usize) -> Result<ArchivePage, StoreError>;
        restore(id: &ThreadId, life: Option<Life>, policy: &ThreadPolicy)
            -> Result<Option<Thread>, WriteError>;
    }
}

measured! {
    Upkeep as upkeep {
        due(buckets: &[u16], limit: usize) -> Result<Due, StoreError>;
        end_due(bucket: u16, ids: &[ThreadId]) -> Result<Reaped, StoreError> => reaped;
        tidy(buckets: &[u16], slowest: &[Option<Position>]) -> Result<(), StoreError>;
    }
}

measured! {
    EffectLedger as effects {
        begin_effect(id: &ThreadId, access: Access, begin: &BeginEffect<'_>) -> Result<Effect, WriteError> => begun;
        settle_effect(id: &ThreadId, access: Access, settle: &SettleEffect, token: Option<TurnToken>)
            -> Result<Settled, WriteError> => settled;
        get_effect(id: &ThreadId, access: Access, effect: &EffectId) -> Result<Option<Effect>, WriteError>;
        list_effects(id: &ThreadId, access: Access, state: Option<EffectState>, position: Option<u64>, limit: usize)
            -> Result<Vec<Effect>, WriteError>;
    }
}

measured! {
    Turns as turns {
        take_turn(id: &ThreadId, access: Access, take: &TakeTurn) -> Result<TurnGranted, WriteError>;
        recall_turn(id: &ThreadId, access: Access, key: IdempotencyKey)
            -> Result<Option<TurnGranted>, WriteError>;
        renew_turn(id: &ThreadId, access: Access, token: TurnToken, ttl: Duration)
            -> Result<TurnGranted, WriteError>;
        end_turn(id: &ThreadId, access: Access, token: TurnToken, release: Release) -> Result<(), WriteError>;
        get_turn(id: &ThreadId, access: Access) -> Result<TurnState, WriteError>;
    } {
        fn ended_turns(&self) -> broadcast::Receiver<ThreadId> { self.backend.ended_turns() }
    }
}

measured! {
    Responses as responses {
        begin_response(id: &ResponseId, begin: &BeginResponse<'_>) -> Result<Begun, WriteError>;
        keep_response(id: &ResponseId, scope: &ScopeId, token: TurnToken, lease: Duration)
            -> Result<(), WriteError>;
        journal(id: &ResponseId, scope: &ScopeId, entry: &JournalEntry<'_>,
            write: Option<&ScopeWrite<'_>>) -> Result<Journaled, WriteError>;
        append_events(id: &ResponseId, token: TurnToken, first: u64, events: &[Bytes])
            -> Result<(), WriteError>;
        read_events(id: &ResponseId, from: u64, limit: usize) -> Result<Option<ResponseEvents>, StoreError>;
        end_response(id: &ResponseId, scope: &ScopeId, end: &EndResponse<'_>,
            write: Option<EndWrite<'_>>) -> Result<Answered<Bytes>, WriteError>;
        get_response(id: &ResponseId) -> Result<Option<ResponseView>, StoreError>;
        last_response(thread: &ThreadId) -> Result<Option<ResponseId>, StoreError>;
        note_delivered(id: &ResponseId) -> Result<(), StoreError>;
        due_responses(buckets: &[u16], limit: usize) -> Result<Vec<ResponseId>, StoreError>;
        delete_response(id: &ResponseId) -> Result<bool, StoreError>;
    } {
        fn bucket_of_scope(&self, scope: &ScopeId) -> u8 { self.backend.bucket_of_scope(scope) }
    }
}

measured! {
    Checkpoints as checkpoints {
        save_checkpoint(id: &ThreadId, name: Option<&CheckpointName>, conditions: &Conditions)
            -> Result<CheckpointSaved, WriteError>;
        list_checkpoints(id: &ThreadId, access: Access)
            -> Result<Option<Found<Vec<CheckpointHead>>>, WriteError>;
        get_checkpoint(id: &ThreadId, access: Access, number: u32)
            -> Result<Option<Found<Checkpoint>>, WriteError>;
        restore_checkpoint(id: &ThreadId, number: u32, write: &Write<'_>)
            -> Result<Written, WriteError> => written,
            copied(id);
        delete_checkpoint(id: &ThreadId, number: u32, conditions: &Conditions)
            -> Result<CheckpointDeleted, WriteError>;
    }
}

measured! {
    Erasure as erasure {
        erase_owned(owner: OwnerTag, tombstone: Duration) -> Result<Option<Erased>, StoreError> => erased;
        erased_lives(owner: OwnerTag) -> Result<Vec<ErasedLife>, StoreError>;
        purge_log(owner: OwnerTag, lives: &[ErasedLife]) -> Result<(), StoreError>;
        forget_lives(owner: OwnerTag, lives: &[ErasedLife]) -> Result<(), StoreError>;
    }
}

measured! {
    Images as images {
        export(id: &ThreadId, access: Access) -> Result<Option<Image>, WriteError>;
        import(id: &ThreadId, import: &Import<'_>) -> Result<Imported, WriteError> => imported, imported(id);
        fork(source: &ThreadId, id: &ThreadId, fork: &Fork<'_>)
            -> Result<Written, WriteError> => written,
            copied(id);
    }
}

measured! {
    Owners as owners {
        list_owned(owner: OwnerTag, order: ThreadOrder, after: Option<&OwnedPosition>, limit: usize)
            -> Result<ThreadPage<OwnedPosition>, StoreError>;
        list_threads(after: Option<&ThreadId>, limit: usize)
            -> Result<ThreadPage<ThreadId>, StoreError>;
        peek_thread(id: &ThreadId) -> Result<Option<Thread>, StoreError>;
        count_threads() -> Result<u64, StoreError>;
        owner_of(id: &ThreadId) -> Result<Option<OwnerTag>, StoreError>;
        preview_histories(ids: &[ThreadId], opening: usize)
            -> Result<Vec<Option<HistoryPreview>>, StoreError>;
        measure_owned(owner: OwnerTag) -> Result<OwnerUsage, StoreError>;
        count_owned(owner: OwnerTag) -> Result<u64, StoreError>;
        reserve_thread(owner: OwnerTag, reservation: ReservationToken, ttl: Duration)
            -> Result<u64, StoreError>;
        release_reservation(owner: OwnerTag, reservation: ReservationToken) -> Result<(), StoreError>;
    }
}

measured! {
    Leases as leases {
        hold(pool: &str, slots: u16, holder: &str, ttl: Duration)
            -> Result<Vec<u16>, StoreError>;
        announce(pool: &str, holder: &str, content: &[u8], note: Option<&[u8]>, ttl: Duration)
            -> Result<Announcements, StoreError>;
        release(pool: &str, holder: &str) -> Result<(), StoreError>;
    }
}

measured! {
    Ledgers as ledgers {
        open_ledger(consumer: &str, start: &[Position]) -> Result<(), StoreError>;
        drop_ledger(consumer: &str) -> Result<(), StoreError>;
        consumers() -> Result<Vec<String>, StoreError>;
        load_ledger(consumer: &str) -> Result<Option<Ledger>, StoreError>;
        load_cursors(consumer: &str) -> Result<Option<Vec<Position>>, StoreError>;
        commit(holding: &Holding<'_>, change: &LedgerChange) -> Result<bool, StoreError>;
        signals(consumer: &str) -> Result<LedgerSignals, StoreError>;
        forget_events(consumer: &str, events: &[(EventId, Option<Bytes>)])
            -> Result<(), StoreError>;
        pending(consumer: &str, limit: usize) -> Result<PendingEvents, StoreError>;
        parked(consumer: &str, after: Option<EventId>, limit: usize)
            -> Result<Vec<(EventId, Bytes)>, StoreError>;
        replay(consumer: &str, records: &[(EventId, Bytes)]) -> Result<u64, StoreError>;
    }
}

measured! {
    Registry as registry {
        records(kind: &str) -> Result<Vec<(String, Bytes)>, StoreError>;
        put_record(kind: &str, name: &str, expected: Option<&[u8]>, new: &[u8], limit: usize)
            -> Result<bool, StoreError>;
        delete_record(kind: &str, name: &str) -> Result<bool, StoreError>;
    }
}

measured! {
    Scopes as scopes {
        read_scope(scope: &ScopeId, parts: &ScopeParts<'_>)
            -> Result<Option<ScopeView>, WriteError>,
            view(scope);
        read_history(scope: &ScopeId, reader: Reader, from: HistoryFrom, limit: usize)
            -> Result<Option<HistoryPage>, WriteError>,
            history(scope) if reader.touch;
        read_segments(scope: &ScopeId, reader: Reader)
            -> Result<Option<Vec<Segment>>, WriteError>;
        read_originals(
            scope: &ScopeId, reader: Reader, which: Originals, from: HistoryFrom, limit: usize
        ) -> Result<Option<HistoryPage>, WriteError>,
            history(scope) if reader.touch;
        find_item(scope: &ScopeId, access: Access, id: &ItemId)
            -> Result<Option<ItemPosition>, WriteError>,
            item(scope);
        write_scope(scope: &ScopeId, write: &ScopeWrite<'_>)
            -> Result<ScopeWritten, WriteError>,
            scope_written(scope, write);
        compact_history(id: &ThreadId, compaction: &Compaction<'_>) -> Result<Compacted, WriteError>;
        end_scope(scope: &ScopeId, end: &ScopeEnd) -> Result<Answered<bool>, WriteError>;
        read_final_history(id: &ThreadId, life: Option<Life>, from: HistoryFrom, limit: usize)
            -> Result<Option<HistoryPage>, StoreError>;
    }
}

measured! {
    Listings as listings {
        list_add(listing: &Listing<'_>, member: &str, at_ms: u64, check_ms: u64)
            -> Result<(), StoreError>;
        list_page(listing: &Listing<'_>, offset: u64, limit: usize)
            -> Result<Vec<String>, StoreError>;
        list_remove(name: &str, members: &[String]) -> Result<(), StoreError>;
        list_due(name: &str, by_ms: u64, limit: usize) -> Result<Vec<String>, StoreError>;
        list_reschedule(name: &str, members: &[(String, u64)]) -> Result<(), StoreError>;
    }
}

measured! {
    Namespaces as kv {
        get_entry(namespace: &Namespace, key: &EntryKey, reading: Reading)
            -> Result<Option<Entry>, StoreError>;
        get_heads(namespace: &Namespace, keys: &[EntryKey])
            -> Result<Vec<Option<EntryHead>>, StoreError>;
        put_entry(namespace: &Namespace, key: &EntryKey, entry: &NewEntry, terms: EntryTerms)
            -> Result<Answered<Put>, WriteError>;
        delete_entry(namespace: &Namespace, key: &EntryKey, terms: EntryTerms)
            -> Result<Answered<bool>, WriteError>;
        list_entries(namespace: &Namespace, range: EntryRange<'_>, limit: usize)
            -> Result<EntryPage, StoreError>;
        open_namespace(namespace: &Namespace) -> Result<NamespaceRecord, StoreError>;
        set_namespace(
            namespace: &Namespace,
            change: NamespaceChange,
            idempotency: Option<IdempotencyKey>,
        ) -> Result<Answered<(NamespaceRecord, Usage)>, WriteError>;
        get_namespace(namespace: &Namespace) -> Result<Option<NamespaceRecord>, StoreError>;
        list_namespaces(after: Option<&NamespacePosition>, limit: usize)
            -> Result<NamespacePage, StoreError>;
        measure(namespaces: &[Namespace]) -> Result<Vec<Usage>, StoreError>;
        delete_namespace(namespace: &Namespace, idempotency: Option<IdempotencyKey>)
            -> Result<Answered<u64>, WriteError>;
        begin_writes(namespace: &Namespace, idempotency: IdempotencyKey)
            -> Result<bool, WriteError>;
    }
}

measured! {
    Rates as rates {
        take_rates(subject: Counted<'_>, rates: &[(RateName, Rate)])
            -> Result<Option<RateLimited>, StoreError>;
        give_back_rates(subject: Counted<'_>, rates: &[(RateName, Rate)])
            -> Result<(), StoreError>;
    }
}

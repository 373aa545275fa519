//! The scripts. Each is called by its digest; one that the server does not have is loaded again.

use std::sync::OnceLock;

use super::transport::commands::{Command, command, long_command};

const PRELUDE: &str = include_str!("lua/prelude.lua");
const RECORDS: &str = include_str!("lua/records.lua");
const LOG: &str = include_str!("lua/log.lua");
const ARRAYS: &str = include_str!("lua/arrays.lua");
const INTEGERS: &str = include_str!("lua/integers.lua");
const SCOPE: &str = include_str!("lua/scope.lua");
const RATES: &str = include_str!("lua/rates.lua");
const ENTRIES: &str = include_str!("lua/entries.lua");

/// A script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Touch,
    ReadThread,
    ReadKeys,
    ReadValues,
    ReadSlice,
    Set,
    Push,
    Write,
    Destroy,
    ListArchives,
    Restore,
    Watch,
    WatchAll,
    Completed,
    Head,
    Due,
    EndDue,
    Tidy,
    Sweep,
    Hold,
    Release,
    OpenLedger,
    Commit,
    Replay,
    PutRecord,
    ReadScope,
    WriteScope,
    MakeRoom,
    EndScope,
    ListAdd,
    ListRemove,
    ListLookAgain,
    PutEntry,
    DeleteEntries,
    UseEntry,
    EntryHeads,
    Measure,
    OpenNamespace,
    CloseNamespace,
    TakeRates,
    GiveBackRates,
}

const ALL: [Script; 41] = [
    Script::Touch,
    Script::ReadThread,
    Script::ReadKeys,
    Script::ReadValues,
    Script::ReadSlice,
    Script::Set,
    Script::Push,
    Script::Write,
    Script::Destroy,
    Script::ListArchives,
    Script::Restore,
    Script::Watch,
    Script::WatchAll,
    Script::Completed,
    Script::Head,
    Script::Due,
    Script::EndDue,
    Script::Tidy,
    Script::Sweep,
    Script::Hold,
    Script::Release,
    Script::OpenLedger,
    Script::Commit,
    Script::Replay,
    Script::PutRecord,
    Script::ReadScope,
    Script::WriteScope,
    Script::MakeRoom,
    Script::EndScope,
    Script::ListAdd,
    Script::ListRemove,
    Script::ListLookAgain,
    Script::PutEntry,
    Script::DeleteEntries,
    Script::UseEntry,
    Script::EntryHeads,
    Script::Measure,
    Script::OpenNamespace,
    Script::CloseNamespace,
    Script::TakeRates,
    Script::GiveBackRates,
];

impl Script {
    /// A call with so many keys, to which keys and arguments are added.
    pub(super) fn call(self, keys: usize) -> Command {
        let mut cmd = long_command("EVALSHA");
        cmd.arg(digests()[self as usize].as_str()).arg(keys);
        cmd
    }

    fn code(self) -> String {
        let (shared, code): (&[&str], _) = match self {
            Self::Touch => (&[], include_str!("lua/touch.lua")),
            Self::ReadThread => (&[], include_str!("lua/read_thread.lua")),
            Self::ReadKeys => (&[], include_str!("lua/read_keys.lua")),
            Self::ReadValues => (&[], include_str!("lua/read_values.lua")),
            Self::ReadSlice => (&[], include_str!("lua/read_slice.lua")),
            Self::Set => (&[], include_str!("lua/set.lua")),
            Self::Push => (&[], include_str!("lua/push.lua")),
            Self::Write => (
                &[RECORDS, LOG, INTEGERS, ARRAYS],
                include_str!("lua/write.lua"),
            ),
            Self::Destroy => (&[RECORDS, LOG], include_str!("lua/destroy.lua")),
            Self::ListArchives => (&[], include_str!("lua/list_archives.lua")),
            Self::Restore => (&[LOG], include_str!("lua/restore.lua")),
            Self::Watch => (&[LOG], include_str!("lua/watch.lua")),
            Self::WatchAll => (&[], include_str!("lua/watch_all.lua")),
            Self::Completed => (&[LOG], include_str!("lua/completed.lua")),
            Self::Head => (&[], include_str!("lua/head.lua")),
            Self::Due => (&[], include_str!("lua/due.lua")),
            Self::EndDue => (&[LOG], include_str!("lua/end_due.lua")),
            Self::Tidy => (&[], include_str!("lua/tidy.lua")),
            Self::Sweep => (&[LOG], include_str!("lua/sweep.lua")),
            Self::Hold => (&[], include_str!("lua/hold.lua")),
            Self::Release => (&[], include_str!("lua/release.lua")),
            Self::OpenLedger => (&[], include_str!("lua/open_ledger.lua")),
            Self::Commit => (&[], include_str!("lua/commit.lua")),
            Self::Replay => (&[], include_str!("lua/replay.lua")),
            Self::PutRecord => (&[], include_str!("lua/put_record.lua")),
            Self::ReadScope => (&[LOG, SCOPE], include_str!("lua/read_scope.lua")),
            Self::WriteScope => (
                &[RECORDS, LOG, INTEGERS, SCOPE],
                include_str!("lua/write_scope.lua"),
            ),
            Self::MakeRoom => (&[LOG, SCOPE], include_str!("lua/make_room.lua")),
            Self::EndScope => (&[RECORDS, LOG, SCOPE], include_str!("lua/end_scope.lua")),
            Self::ListAdd => (&[], include_str!("lua/list_add.lua")),
            Self::ListRemove => (&[], include_str!("lua/list_remove.lua")),
            Self::ListLookAgain => (&[], include_str!("lua/list_look_again.lua")),
            Self::PutEntry => (&[RECORDS, ENTRIES], include_str!("lua/put_entry.lua")),
            Self::DeleteEntries => (&[RECORDS, ENTRIES], include_str!("lua/delete_entries.lua")),
            Self::UseEntry => (&[ENTRIES], include_str!("lua/use_entry.lua")),
            Self::EntryHeads => (&[ENTRIES], include_str!("lua/entry_heads.lua")),
            Self::Measure => (&[ENTRIES], include_str!("lua/measure.lua")),
            Self::OpenNamespace => (&[], include_str!("lua/open_namespace.lua")),
            Self::CloseNamespace => (&[], include_str!("lua/close_namespace.lua")),
            Self::TakeRates => (&[RATES], include_str!("lua/take_rates.lua")),
            Self::GiveBackRates => (&[RATES], include_str!("lua/give_back_rates.lua")),
        };
        [PRELUDE, &shared.concat(), code].concat()
    }
}

/// Commands that load all scripts.
pub(super) fn load_all() -> Vec<Command> {
    let load = |script: Script| {
        let mut load = command("SCRIPT");
        load.arg("LOAD").arg(script.code());
        load
    };
    ALL.into_iter().map(load).collect()
}

/// SHA-1 is what Redis names scripts by; nothing depends on its strength.
fn digests() -> &'static [String; ALL.len()] {
    static DIGESTS: OnceLock<[String; ALL.len()]> = OnceLock::new();
    DIGESTS.get_or_init(|| ALL.map(|script| redis::Script::new(&script.code()).get_hash().into()))
}

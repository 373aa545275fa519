//! Scripts that run in Redis. A script is called by its digest, and is reloaded if the server does not have it.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::transport::{Command, command, long_command};

const PRELUDE: &str = include_str!("lua/shared/prelude.lua");
const RECORDS: &str = include_str!("lua/shared/records.lua");
const INDEX: &str = include_str!("lua/shared/index.lua");
const LOG: &str = concat!(
    include_str!("lua/shared/index.lua"),
    include_str!("lua/log/log.lua")
);
const ERASED: &str = include_str!("lua/log/erased.lua");
const ARRAYS: &str = include_str!("lua/shared/arrays.lua");
const INTEGERS: &str = include_str!("lua/shared/integers.lua");
const SCOPE: &str = concat!(
    include_str!("lua/scopes/items.lua"),
    include_str!("lua/scopes/segments.lua"),
    include_str!("lua/scopes/scope.lua")
);
const TURNS: &str = include_str!("lua/shared/turns.lua");
const CHANGES: &str = include_str!("lua/shared/changes.lua");
const CHECKPOINTS: &str = include_str!("lua/shared/checkpoints.lua");
const OWNERS: &str = include_str!("lua/shared/owners.lua");
const BIRTHS: &str = include_str!("lua/shared/births.lua");
const EFFECTS: &str = include_str!("lua/shared/effects.lua");
const RESPONSES: &str = include_str!("lua/responses/responses.lua");
const RATES: &str = include_str!("lua/deployment/rates.lua");
const ENTRIES: &str = include_str!("lua/kv/entries.lua");
const NAMESPACES: &str = include_str!("lua/kv/namespaces.lua");

/// Declares one script per row. A row contains the name and file of a script, optional files with parts, and the names
/// of the shared code that the script uses in addition to the prelude.
macro_rules! scripts {
    ($($name:ident = $file:literal $(+ $parts:literal)* [$($shared:ident),*],)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Script {
            $($name,)*
        }

        const ALL: &[Script] = &[$(Script::$name,)*];

        impl Script {
            fn code(self) -> String {
                let (shared, code, parts): (&[&str], _, _) = match self {
                    $(Self::$name => (
                        &[$($shared),*],
                        include_str!(concat!("lua/", $file)),
                        concat!($(include_str!(concat!("lua/", $parts)),)*),
                    ),)*
                };
                let woven = [PRELUDE, &shared.concat(), &weave(code, parts)].concat();
                fold(&prune(&without_comments(&woven)))
            }
        }
    };
}

scripts! {
    Touch = "threads/touch.lua" [],
    Look = "threads/look.lua" [],
    ReadThread = "threads/read_thread.lua" [],
    ReadKeys = "threads/read_keys.lua" [],
    ReadValues = "threads/read_values.lua" [],
    ReadSlice = "threads/read_slice.lua" [],
    Set = "threads/set.lua" + "threads/fast.lua" [],
    Push = "threads/push.lua" + "threads/fast.lua" [],
    Write = "threads/write.lua" [OWNERS, RECORDS, LOG, INTEGERS, ARRAYS, TURNS],
    WriteWithHistory = "threads/write.lua" + "threads/appends.lua" [OWNERS, RECORDS, LOG, INTEGERS, ARRAYS, TURNS, SCOPE],
    WriteWithEffects = "threads/write.lua" + "threads/settles.lua" + "threads/appends.lua" [OWNERS, RECORDS, LOG, INTEGERS, ARRAYS, TURNS, SCOPE, EFFECTS],
    WriteInResponse = "threads/write.lua" + "responses/in_thread.lua" + "threads/appends.lua" [OWNERS, RECORDS, LOG, INTEGERS, ARRAYS, TURNS, SCOPE, RESPONSES],
    Destroy = "threads/destroy.lua" [OWNERS, RECORDS, LOG, TURNS],
    TakeTurn = "threads/take_turn.lua" [OWNERS, RECORDS, LOG, TURNS, EFFECTS],
    RenewTurn = "threads/renew_turn.lua" [OWNERS, TURNS, EFFECTS],
    EndTurn = "threads/end_turn.lua" [OWNERS, LOG, TURNS],
    ReadTurn = "threads/read_turn.lua" [OWNERS, TURNS],
    BeginEffect = "threads/begin_effect.lua" [OWNERS, LOG, TURNS, EFFECTS],
    SettleEffect = "threads/settle_effect.lua" [OWNERS, LOG, TURNS, EFFECTS],
    ReadEffects = "threads/read_effects.lua" [TURNS, EFFECTS],
    Rotate = "threads/rotate.lua" [OWNERS, RECORDS, LOG, TURNS, CHANGES],
    SaveCheckpoint = "threads/save_checkpoint.lua" [OWNERS, RECORDS, LOG, TURNS, CHANGES, CHECKPOINTS],
    ReadCheckpoints = "threads/read_checkpoints.lua" [CHECKPOINTS],
    RestoreCheckpoint = "threads/restore_checkpoint.lua" [OWNERS, RECORDS, LOG, TURNS, CHANGES, CHECKPOINTS],
    DeleteCheckpoint = "threads/delete_checkpoint.lua" [OWNERS, RECORDS, LOG, TURNS, CHANGES, CHECKPOINTS],
    Heads = "threads/heads.lua" [OWNERS, LOG],
    GlanceHistories = "threads/preview_histories.lua" [OWNERS, LOG, SCOPE],
    MeasureOwned = "threads/measure_owned.lua" [OWNERS, LOG],
    ReserveThread = "threads/reserve_thread.lua" [],
    EraseOwned = "threads/erase_owned.lua" [OWNERS, LOG, TURNS, RESPONSES],
    ListIds = "threads/list_ids.lua" [INDEX],
    CountIds = "threads/count_ids.lua" [],
    ListArchives = "threads/list_archives.lua" [],
    Restore = "threads/restore.lua" [OWNERS, LOG],
    Image = "threads/image.lua" [OWNERS, RECORDS, LOG, SCOPE, TURNS, CHECKPOINTS, EFFECTS],
    StageFields = "threads/stage_fields.lua" [],
    StageItems = "threads/stage_items.lua" [],
    Import = "threads/import.lua" [OWNERS, RECORDS, LOG, TURNS, BIRTHS],
    Fork = "threads/fork.lua" [OWNERS, RECORDS, LOG, SCOPE, TURNS, CHECKPOINTS, BIRTHS, EFFECTS],
    Recall = "threads/recall.lua" [RECORDS],
    Watch = "log/watch.lua" [OWNERS, LOG],
    ValuesAt = "log/values_at.lua" [OWNERS, LOG],
    WatchAll = "log/watch_all.lua" [],
    FindErased = "log/find_erased.lua" [OWNERS, LOG, ERASED],
    Rewrite = "log/rewrite.lua" [OWNERS, LOG, ERASED],
    Completed = "log/completed.lua" [OWNERS, LOG],
    Head = "log/head.lua" [],
    Due = "threads/due.lua" [OWNERS, LOG],
    EndDue = "threads/end_due.lua" [OWNERS, LOG],
    Tidy = "log/tidy.lua" [],
    Sweep = "threads/sweep.lua" [OWNERS, LOG],
    Hold = "deployment/hold.lua" [],
    Release = "deployment/release.lua" [],
    ProbePacking = "deployment/probe_packing.lua" [],
    Announce = "deployment/announce.lua" [],
    OpenLedger = "log/open_ledger.lua" [],
    Commit = "log/commit.lua" [],
    Replay = "log/replay.lua" [],
    ForgetEvents = "log/forget_events.lua" [],
    PutRecord = "deployment/put_record.lua" [],
    ReadScope = "scopes/read_scope.lua" [OWNERS, LOG, SCOPE],
    FindItem = "scopes/find_item.lua" [OWNERS, LOG, SCOPE],
    CompactHistory = "scopes/compact_history.lua" [OWNERS, RECORDS, LOG, SCOPE, TURNS],
    ReadSegments = "scopes/read_segments.lua" [OWNERS, LOG, SCOPE],
    ReadOriginals = "scopes/read_originals.lua" [OWNERS, LOG, SCOPE],
    WriteScope = "scopes/write_scope.lua" [OWNERS, RECORDS, LOG, INTEGERS, SCOPE, TURNS],
    WriteScopeInResponse = "scopes/write_scope.lua" + "responses/in_scope.lua" [OWNERS, RECORDS, LOG, INTEGERS, SCOPE, TURNS, RESPONSES],
    MakeRoom = "scopes/make_room.lua" [OWNERS, LOG, SCOPE],
    EndScope = "scopes/end_scope.lua" [OWNERS, RECORDS, LOG, SCOPE, TURNS],
    BeginResponse = "responses/begin.lua" [OWNERS, LOG, SCOPE, TURNS, RESPONSES],
    CheckResponse = "responses/check.lua" [],
    DeliveredResponse = "responses/delivered.lua" [],
    KeepResponse = "responses/keep.lua" [OWNERS, LOG, TURNS, RESPONSES],
    StepResponse = "responses/step.lua" [OWNERS, LOG, TURNS, RESPONSES],
    DueResponses = "responses/due.lua" [],
    AppendEvents = "responses/append_events.lua" + "threads/fast.lua" [OWNERS, LOG, TURNS, RESPONSES],
    ForgetResponse = "responses/forget.lua" [OWNERS, LOG, TURNS, RESPONSES],
    ListAdd = "deployment/list_add.lua" [],
    ListRemove = "deployment/list_remove.lua" [],
    ListReschedule = "deployment/list_reschedule.lua" [],
    PutEntry = "kv/put_entry.lua" [RECORDS, ENTRIES],
    DeleteEntries = "kv/delete_entries.lua" [RECORDS, ENTRIES],
    BuryEntries = "kv/bury_entries.lua" [ENTRIES],
    UseEntry = "kv/use_entry.lua" [ENTRIES],
    EntryHeads = "kv/entry_heads.lua" [ENTRIES],
    Measure = "kv/measure.lua" [ENTRIES],
    LookAtNamespaces = "kv/look_at_namespaces.lua" [NAMESPACES],
    SetNamespace = "kv/set_namespace.lua" [RECORDS, NAMESPACES],
    CloseNamespace = "kv/close_namespace.lua" [NAMESPACES],
    EndIdle = "kv/end_idle.lua" [NAMESPACES],
    ForgetEnded = "kv/forget_ended.lua" [],
    RememberAnswer = "kv/remember_answer.lua" [RECORDS],
    TakeRates = "deployment/take_rates.lua" [RATES],
    GiveBackRates = "deployment/give_back_rates.lua" [RATES],
}

impl Script {
    /// Builds a call to the script with one key. If `is_one_of_many`, several such calls may be combined into one.
    pub(super) fn call_on(self, key: &str, is_one_of_many: bool) -> Command {
        let mut cmd = self.named();
        match is_one_of_many {
            true => cmd.only_key(key),
            false => cmd.arg(1).arg(key),
        };
        cmd
    }

    pub(super) fn call(self, keys: usize) -> Command {
        let mut cmd = self.named();
        cmd.arg(keys);
        cmd
    }

    fn named(self) -> Command {
        let mut cmd = long_command("EVALSHA");
        cmd.arg(digests()[self as usize].as_str());
        cmd
    }
}

/// Inserts parts into a script: the lines after `--+ name` in `parts` are inserted after the line `--+ name` in `code`.
/// A script for a rare case can therefore extend the script for the common case without slowing it down.
fn weave(code: &str, parts: &str) -> String {
    const MARKER: &str = "--+ ";
    let parts = parts.split(MARKER).skip(1);
    let mut woven = String::with_capacity(code.len());
    for line in code.split_inclusive('\n') {
        woven.push_str(line);
        let name = line.strip_prefix(MARKER);
        if let Some(name) = name {
            let parts = parts.clone().filter_map(|part| part.strip_prefix(name));
            parts.for_each(|part| woven.push_str(part));
        }
    }
    woven
}

/// Removes comment lines, because every connection sends all scripts.
fn without_comments(code: &str) -> String {
    let lines = code.split_inclusive('\n');
    lines
        .filter(|line| !line.trim_start().starts_with("--"))
        .collect()
}

/// Lines of a script: either a top-level function and its name, or other lines up to the next function.
struct Piece<'a> {
    name: Option<&'a str>,
    lines: Vec<&'a str>,
}

impl<'a> Piece<'a> {
    fn words(&self) -> impl Iterator<Item = &'a str> {
        let lines = self.lines.iter();
        lines.flat_map(|line| line.split(|c| !is_word_character(c)))
    }
}

/// Removes unused functions, because every call to a script creates all of its functions again.
fn prune(code: &str) -> String {
    let pieces = pieces(code);
    let mut is_used: Vec<_> = pieces.iter().map(|piece| piece.name.is_none()).collect();
    let mut pending: Vec<_> = (0..pieces.len()).filter(|index| is_used[*index]).collect();
    let mut functions = HashMap::<_, Vec<_>>::new();
    for (index, piece) in pieces.iter().enumerate() {
        functions.entry(piece.name).or_default().push(index);
    }
    while let Some(index) = pending.pop() {
        for word in pieces[index].words() {
            for &function in functions.get(&Some(word)).into_iter().flatten() {
                if !std::mem::replace(&mut is_used[function], true) {
                    pending.push(function);
                }
            }
        }
    }
    let used = pieces.iter().zip(is_used).filter(|(_, is_used)| *is_used);
    used.flat_map(|(piece, _)| &piece.lines).copied().collect()
}

fn pieces(code: &str) -> Vec<Piece<'_>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let mut is_open = false;
    for line in code.split_inclusive('\n') {
        let function = line.strip_prefix("local function ");
        let name = function.and_then(|function| function.split('(').next());
        match pieces.last_mut() {
            Some(last) if is_open || name.is_none() && last.name.is_none() => last.lines.push(line),
            _ => pieces.push(Piece {
                name,
                lines: vec![line],
            }),
        }
        let end = line.trim_end();
        is_open = (is_open || name.is_some())
            && end != "end"
            && !(name.is_some() && end.ends_with(" end"));
    }
    pieces
}

/// Inlines constants, because a local variable costs time in each call of a script and in each function that uses it.
fn fold(code: &str) -> String {
    let mut constants = HashMap::new();
    let mut folded = String::with_capacity(code.len());
    for line in code.lines() {
        if let Some(defined) = definition(line) {
            constants.extend(defined);
        } else if !line.bytes().any(|byte| byte.is_ascii_uppercase()) {
            folded.push_str(line);
        } else {
            // a word and the character after it
            for part in line.split_inclusive(|c| !is_word_character(c)) {
                let word = part.trim_end_matches(|c| !is_word_character(c));
                folded.push_str(constants.get(word).unwrap_or(&word));
                folded.push_str(&part[word.len()..]);
            }
        }
        folded.push('\n');
    }
    folded
}

fn is_word_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Parses the constants in a line such as `local MIN, MAX = 1, 'text'`.
fn definition(line: &str) -> Option<impl Iterator<Item = (&str, &str)>> {
    let (names, values) = line.strip_prefix("local ")?.split_once(" = ")?;
    let is_constant = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let is_literal = |value: &str| value.starts_with('\'') || value.parse::<u32>().is_ok();
    let are_constants = names.split(", ").all(is_constant) && values.split(", ").all(is_literal);
    are_constants.then(|| names.split(", ").zip(values.split(", ")))
}

/// Returns the commands that load all scripts. The commands are cached, because each new connection sends them.
pub(super) fn load_all() -> &'static [Command] {
    static LOADS: OnceLock<Vec<Command>> = OnceLock::new();
    let load = |code: &String| {
        let mut load = command("SCRIPT");
        load.arg("LOAD").arg(code);
        load
    };
    LOADS.get_or_init(|| codes().iter().map(load).collect())
}

fn codes() -> &'static [String] {
    static CODES: OnceLock<Vec<String>> = OnceLock::new();
    CODES.get_or_init(|| ALL.iter().map(|script| script.code()).collect())
}

/// Returns the digests of all scripts. Redis requires SHA-1 digests; security does not depend on them.
fn digests() -> &'static [String] {
    static DIGESTS: OnceLock<Vec<String>> = OnceLock::new();
    let digest = |code: &String| redis::Script::new(code).get_hash().into();
    DIGESTS.get_or_init(|| codes().iter().map(digest).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_inlined_and_other_words_are_unchanged() {
        let code =
            "local MIN, MOST_OF = 1, '>I4'\nlocal X = {MIN}\nlocal a = MIN + AT_LEAST -- MOST_OF\n";

        assert_eq!(
            fold(code),
            "\nlocal X = {1}\nlocal a = 1 + AT_LEAST -- '>I4'\n"
        );
    }

    #[test]
    fn unused_functions_are_removed() {
        let code = "local function a() return 1 end\nlocal function b(x)\n  if x then\n  end\n  return a()\nend\n\
            local function c()\n  return b(1) + c()\nend\nlocal d = 1\n";

        assert_eq!(prune(code), "local d = 1\n");
        assert_eq!(
            prune(&format!("{code}return c()\n")),
            format!("{code}return c()\n")
        );
        let (used, unused) = code.split_once("local function c").unwrap();
        let d = &unused[unused.find("local d").unwrap()..];
        assert_eq!(
            prune(&format!("{code}return b()\n")),
            format!("{used}{d}return b()\n")
        );
    }

    #[test]
    fn comment_lines_are_removed() {
        assert_eq!(
            without_comments("-- a\nb -- c\n  -- d\n\n--+ e\nf"),
            "b -- c\n\nf"
        );
    }

    #[test]
    fn parts_are_inserted_after_the_lines_that_name_them() {
        let code = "a\n--+ one\nb\n--+ two\nc\n";

        assert_eq!(weave(code, ""), code);
        assert_eq!(
            weave(code, "-- head\n--+ two\n2\n--+ one\n1\n1\n"),
            "a\n--+ one\n1\n1\nb\n--+ two\n2\nc\n"
        );
    }

    #[test]
    fn every_constant_is_inlined() {
        for script in ALL {
            let code = script.code();
            let mut lines = code.lines();
            assert!(lines.all(|line| definition(line).is_none()), "{script:?}");
        }
    }
}

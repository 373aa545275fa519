//! The scripts. Each is called by its digest; one that the server does not have is loaded again.

use std::sync::OnceLock;

use redis::Cmd;

const PRELUDE: &str = include_str!("lua/prelude.lua");
const RECORDS: &str = include_str!("lua/records.lua");

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
}

const ALL: [Script; 9] = [
    Script::Touch,
    Script::ReadThread,
    Script::ReadKeys,
    Script::ReadValues,
    Script::ReadSlice,
    Script::Set,
    Script::Push,
    Script::Write,
    Script::Destroy,
];

impl Script {
    /// A call with so many keys, to which keys and arguments are added.
    pub(super) fn call(self, keys: usize) -> Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(digests()[self as usize].as_str()).arg(keys);
        cmd
    }

    fn code(self) -> String {
        let (shared, code) = match self {
            Self::Touch => ("", include_str!("lua/touch.lua")),
            Self::ReadThread => ("", include_str!("lua/read_thread.lua")),
            Self::ReadKeys => ("", include_str!("lua/read_keys.lua")),
            Self::ReadValues => ("", include_str!("lua/read_values.lua")),
            Self::ReadSlice => ("", include_str!("lua/read_slice.lua")),
            Self::Set => ("", include_str!("lua/set.lua")),
            Self::Push => ("", include_str!("lua/push.lua")),
            Self::Write => (RECORDS, include_str!("lua/write.lua")),
            Self::Destroy => (RECORDS, include_str!("lua/destroy.lua")),
        };
        [PRELUDE, shared, code].concat()
    }
}

/// Commands that load all scripts.
pub(super) fn load_all() -> redis::Pipeline {
    let mut pipeline = redis::pipe();
    for script in ALL {
        pipeline.cmd("SCRIPT").arg("LOAD").arg(script.code());
    }
    pipeline
}

/// SHA-1 is what Redis names scripts by; nothing depends on its strength.
fn digests() -> &'static [String; ALL.len()] {
    static DIGESTS: OnceLock<[String; ALL.len()]> = OnceLock::new();
    DIGESTS.get_or_init(|| ALL.map(|script| redis::Script::new(&script.code()).get_hash().into()))
}

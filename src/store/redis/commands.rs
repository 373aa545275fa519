//! Commands, and what they are about.

use redis::{Arg, Cmd, Pipeline};

/// A command with room for the arguments that most have, so that adding them moves nothing.
pub(super) fn command(name: &str) -> Cmd {
    let mut cmd = Cmd::with_capacity(16, 512);
    cmd.arg(name);
    cmd
}

/// Commands that are sent in one go.
pub(super) fn pipeline(cmds: impl IntoIterator<Item = Cmd>) -> Pipeline {
    let mut pipeline = Pipeline::new();
    for cmd in cmds {
        pipeline.add_command(cmd);
    }
    pipeline
}

/// The first key of a command of the store; the others are in the same slot.
pub(super) fn key_of(cmd: &Cmd) -> Option<&[u8]> {
    let mut words = cmd.args_iter().filter_map(|word| match word {
        Arg::Simple(word) => Some(word),
        _ => None,
    });
    match words.next()? {
        b"TIME" | b"PING" | b"INFO" | b"CLUSTER" => None,
        b"EVALSHA" | b"EVAL" => {
            let count = words.nth(1)?;
            words.next().filter(|_| count != b"0")
        }
        _ => words.next(),
    }
}

//! Commands as they are sent, and what they are about.

use std::{fmt, iter};

use memchr::memchr;

/// A command. It is our own to save CPU: its words are packed as they are added, just as they are sent ([arrays of
/// bulk strings](https://redis.io/docs/latest/develop/reference/protocol-spec/)).
#[derive(Clone)]
pub(crate) struct Command {
    count: usize,
    packed: Vec<u8>,
    /// Where the number of keys, the key and the arguments begin, if it is one of many.
    parts: Option<[usize; 3]>,
    is_guarded: bool,
}

/// A call of a script with one key, which may be sent as one call with others of the same script: first all keys, then all
/// arguments.
pub(super) struct OneOfMany<'a> {
    /// The words up to the number of keys, packed.
    pub(super) head: &'a [u8],
    /// The key, packed.
    pub(super) key: &'a [u8],
    /// The arguments, packed.
    pub(super) arguments: &'a [u8],
    /// The number of arguments.
    pub(super) count: usize,
}

/// A word of a command.
pub(crate) trait Word {
    fn add_to(&self, command: &mut Command);
}

/// A command of that name, with room for the key of a thread and some words.
pub(crate) fn command(name: &str) -> Command {
    with_room(name, 128)
}

/// A command with room for what most calls of scripts have, so that adding it moves nothing.
pub(crate) fn long_command(name: &str) -> Command {
    with_room(name, 512)
}

fn with_room(name: &str, bytes: usize) -> Command {
    let mut command = Command {
        count: 0,
        packed: Vec::with_capacity(bytes),
        parts: None,
        is_guarded: false,
    };
    command.arg(name);
    command
}

impl Command {
    /// Adds a word.
    pub(crate) fn arg(&mut self, word: impl Word) -> &mut Self {
        word.add_to(self);
        self
    }

    /// Adds a key, after their number, 1, and lets the call be sent together with others of the same script. The arguments
    /// follow, as many for each.
    pub(crate) fn only_key(&mut self, key: impl Word) -> &mut Self {
        let numbers = self.packed.len();
        self.arg(1);
        let keys = self.packed.len();
        self.arg(key);
        self.parts = Some([numbers, keys, self.packed.len()]);
        self
    }

    /// The number of its words.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Its parts, if it may be sent together with others.
    pub(super) fn one_of_many(&self) -> Option<OneOfMany<'_>> {
        let [number, key, arguments] = self.parts?;
        Some(OneOfMany {
            head: &self.packed[..number],
            key: &self.packed[key..arguments],
            arguments: &self.packed[arguments..],
            // without name, digest, number and key
            count: self.count - 4,
        })
    }

    /// Lets only a server answer that takes writes, to it and the commands that are sent with it. Not for a cluster, whose
    /// servers send callers on by themselves.
    pub(crate) fn guarded(mut self) -> Self {
        self.is_guarded = true;
        self
    }

    pub(super) fn is_guarded(&self) -> bool {
        self.is_guarded
    }

    /// Adds several words.
    pub(crate) fn args(&mut self, words: impl IntoIterator<Item: Word>) -> &mut Self {
        for word in words {
            self.arg(word);
        }
        self
    }

    /// Appends it as it is sent.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.packed.len() + 16);
        write_count(self.count, out);
        out.extend_from_slice(&self.packed);
    }

    /// Its words, the name first.
    pub(super) fn words(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.packed[..];
        iter::from_fn(move || {
            let line = memchr(b'\r', rest)?;
            let length: usize = str::from_utf8(rest.get(1..line)?).ok()?.parse().ok()?;
            let start = line + 2;
            let word = rest.get(start..start + length)?;
            rest = rest.get(start + length + 2..)?;
            Some(word)
        })
    }

    fn add(&mut self, word: &[u8]) {
        self.count += 1;
        write_word(word, &mut self.packed);
    }
}

/// Appends the number of words that follow.
pub(super) fn write_count(count: usize, out: &mut Vec<u8>) {
    out.push(b'*');
    out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends a word as it is sent.
pub(super) fn write_word(word: &[u8], out: &mut Vec<u8>) {
    out.reserve(word.len() + 16);
    out.push(b'$');
    out.extend_from_slice(itoa::Buffer::new().format(word.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// The first key of a command of the store; the others are in the same slot.
pub(crate) fn key_of(command: &Command) -> Option<&[u8]> {
    let mut words = command.words();
    match words.next()? {
        b"TIME" | b"PING" | b"INFO" | b"CLUSTER" => None,
        b"EVALSHA" | b"EVAL" => {
            let count = words.nth(1)?;
            words.next().filter(|_| count != b"0")
        }
        _ => words.next(),
    }
}

/// The same for connections of the library.
impl From<&Command> for redis::Cmd {
    fn from(command: &Command) -> Self {
        let mut cmd = Self::with_capacity(command.count, command.packed.len());
        for word in command.words() {
            cmd.arg(word);
        }
        cmd
    }
}

impl Word for [u8] {
    fn add_to(&self, command: &mut Command) {
        command.add(self);
    }
}

impl<const N: usize> Word for [u8; N] {
    fn add_to(&self, command: &mut Command) {
        command.add(self);
    }
}

impl Word for str {
    fn add_to(&self, command: &mut Command) {
        command.add(self.as_bytes());
    }
}

impl Word for String {
    fn add_to(&self, command: &mut Command) {
        command.add(self.as_bytes());
    }
}

impl Word for Vec<u8> {
    fn add_to(&self, command: &mut Command) {
        command.add(self);
    }
}

impl<W: Word + ?Sized> Word for &W {
    fn add_to(&self, command: &mut Command) {
        (**self).add_to(command);
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl Word for $number {
            fn add_to(&self, command: &mut Command) {
                command.add(itoa::Buffer::new().format(*self).as_bytes());
            }
        })*
    };
}

numbers!(i32 i64 u16 u32 u64 usize);

/// State and passwords are nobody's to see.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_command_is_sent_as_an_array_of_its_words() {
        let mut set = command("SET");
        set.arg("a key").arg(&b"\r\n"[..]).arg(-7);
        let mut sent = Vec::new();
        set.write(&mut sent);

        let expected = b"*4\r\n$3\r\nSET\r\n$5\r\na key\r\n$2\r\n\r\n\r\n$2\r\n-7\r\n";
        assert_eq!(sent, expected);
    }

    proptest! {
        #[test]
        fn words_come_back_as_they_were_added(words in vec(vec(any::<u8>(), 0..40), 0..20)) {
            let mut all = command("NAME");
            for word in &words {
                all.arg(word);
            }

            let read: Vec<_> = all.words().skip(1).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(read, words);
        }
    }
}

use std::{fmt, iter};

use memchr::memchr;

/// A command in its wire format ([RESP](https://redis.io/docs/latest/develop/reference/protocol-spec/)). This type uses
/// less CPU than the command type of the `redis` crate.
#[derive(Clone)]
pub(crate) struct Command {
    count: usize,
    packed: Vec<u8>,
    /// The offsets of the key count, the key and the arguments; `None` if the command cannot be batched.
    parts: Option<[usize; 3]>,
    is_guarded: bool,
}

/// A script call with one key. Several calls to a script can be sent as one call, with all keys before all arguments.
pub(super) struct OneOfMany<'a> {
    pub(super) head: &'a [u8],
    pub(super) key: &'a [u8],
    pub(super) arguments: &'a [u8],
    pub(super) count: usize,
}

pub(crate) trait Word {
    fn add_to(&self, command: &mut Command);
}

pub(crate) fn command(name: &str) -> Command {
    with_capacity(name, 128)
}

/// Creates a command with enough space for most script calls, so that adding arguments does not reallocate the buffer.
pub(crate) fn long_command(name: &str) -> Command {
    with_capacity(name, 512)
}

fn with_capacity(name: &str, bytes: usize) -> Command {
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
    pub(crate) fn arg(&mut self, word: impl Word) -> &mut Self {
        word.add_to(self);
        self
    }

    /// Adds a key count of 1, and the key. All calls to one script in a batch must have the same number of arguments.
    pub(crate) fn only_key(&mut self, key: impl Word) -> &mut Self {
        let numbers = self.packed.len();
        self.arg(1);
        let keys = self.packed.len();
        self.arg(key);
        self.parts = Some([numbers, keys, self.packed.len()]);
        self
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn one_of_many(&self) -> Option<OneOfMany<'_>> {
        let [number, key, arguments] = self.parts?;
        Some(OneOfMany {
            head: &self.packed[..number],
            key: &self.packed[key..arguments],
            arguments: &self.packed[arguments..],
            // excludes the name, the digest, the number of keys, and the key
            count: self.count - 4,
        })
    }

    /// Makes this command and its whole call fail on a replica. Not needed in clusters, where replicas redirect calls.
    pub(crate) fn guarded(mut self) -> Self {
        self.is_guarded = true;
        self
    }

    pub(super) fn is_guarded(&self) -> bool {
        self.is_guarded
    }

    pub(crate) fn args(&mut self, words: impl IntoIterator<Item: Word>) -> &mut Self {
        for word in words {
            self.arg(word);
        }
        self
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.packed.len() + 16);
        write_count(self.count, out);
        out.extend_from_slice(&self.packed);
    }

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

pub(super) fn write_count(count: usize, out: &mut Vec<u8>) {
    out.push(b'*');
    out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
    out.extend_from_slice(b"\r\n");
}

pub(super) fn write_word(word: &[u8], out: &mut Vec<u8>) {
    out.reserve(word.len() + 16);
    out.push(b'$');
    out.extend_from_slice(itoa::Buffer::new().format(word.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// Returns the first key. It determines the slot, because all keys of a command are in the same slot.
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

/// Omits state and passwords.
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
        fn added_words_are_read_back_unchanged(words in vec(vec(any::<u8>(), 0..40), 0..20)) {
            let mut cmd = command("NAME");
            for word in &words {
                cmd.arg(word);
            }

            let read: Vec<_> = cmd.words().skip(1).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(read, words);
        }
    }
}

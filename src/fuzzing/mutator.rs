//! New inputs made of those in the corpus.
//!
//! It knows no format, but it knows what texts of a format have in common: their parts stand between
//! punctuation, brackets nest, and digits are a number. Most of what it makes is close to valid.

use std::ops::Range;

use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _};

/// A small input, so that many can be tried.
const SMALL_BYTES: usize = 4_096;
/// A large input: enough that work which is a product of two inputs shows.
const LARGE_BYTES: Range<usize> = 50_000..300_000;
/// More levels than any reader takes.
const LEVELS: usize = 600;

const PUNCTUATION: &[u8] = b"{}[](),:;\"'=&?%/.+-*$~ \t\r\n";

/// Bytes and words on which readers of one format or another have stumbled, with `|` between them.
const WORDS: &[u8] = b"null|true|{}|[]|\"\"|{\"\":|[[|\"a\":|,|:|\"|\\|\\\\|\\\"|\\u0000|\\u0061|\\ud83d\
    |\\ude00|\\ud83d\\ude00|\\/|1e400|-0|1.0|0|-|*|\xff|\0|\x1f|\x7f|\xc3\xa9|\xf0\x9f\x98\x80|\xef\xbb\xbf\
    |%|%2|%00|%ff|%2B|+|&|=|;|; |, |\n|\r|\r\n|\n---\n|*-1\r\n|$-1\r\n|*1\r\n|%1\r\n|_\r\n|127.0.0.1|::1\
    |[::1]:80|W/\"1\"|__proto__";

/// Numbers at which types and limits end.
const NUMBERS: &str = "0 1 2 -1 00 127 128 255 256 512 513 1000 1001 65535 65536 999999999 2147483647 \
    2147483648 4294967295 4294967296 9007199254740993 9223372036854775807 9223372036854775808 \
    18446744073709551615 18446744073709551616 99999999999999999999999999 1e400 -9223372036854775808";

pub(super) struct Mutator<'a> {
    random: StdRng,
    corpus: Vec<&'a [u8]>,
    words: Vec<&'static [u8]>,
    numbers: Vec<&'static str>,
}

impl<'a> Mutator<'a> {
    pub(super) fn new(random: StdRng, corpus: Vec<&'a [u8]>) -> Self {
        Self {
            random,
            corpus,
            words: WORDS.split(|byte| *byte == b'|').collect(),
            numbers: NUMBERS.split(' ').collect(),
        }
    }

    /// A file of the corpus with a few changes.
    pub(super) fn mutated(&mut self) -> Vec<u8> {
        let mut input = self.file().to_vec();
        for _ in 0..self.below(6) + 1 {
            self.change(&mut input);
        }
        input.truncate(SMALL_BYTES);
        input
    }

    /// A file of the corpus, mostly with a change, in which some parts repeat very often.
    pub(super) fn stretched(&mut self) -> Vec<u8> {
        let mut input = self.file().to_vec();
        if self.below(3) == 0 {
            self.change(&mut input);
        }
        let bytes = self.random.random_range(LARGE_BYTES);
        let stretches = self.below(3) + 1;
        for _ in 0..stretches {
            self.stretch(&mut input, bytes / stretches);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let here = self.part(input);
        match self.below(11) {
            0 => {
                let word = self.word();
                input.splice(here.start..here.start, word.iter().copied());
            }
            1 => {
                let word = self.word();
                input.splice(here, word.iter().copied());
            }
            2 => {
                if let Some(byte) = input.get_mut(here.start) {
                    *byte = self.random.next_u32() as u8;
                }
            }
            3 => {
                input.drain(here);
            }
            4 => {
                let times = self.below(4) + 1;
                let part = input[here.clone()].repeat(times);
                input.splice(here.start..here.start, part);
            }
            5 | 6 => {
                let other = self.file();
                let there = self.part(other);
                input.splice(here, other[there].iter().copied());
            }
            7 => {
                // a part of this input elsewhere in it
                let there = self.part(input);
                let part = input[here].to_vec();
                input.splice(there, part);
            }
            8 => {
                if let Some(digits) = digits_after(input, here.start) {
                    let place = self.below(self.numbers.len());
                    let number = self.numbers[place];
                    input.splice(digits, number.bytes());
                }
            }
            9 => {
                let levels = self.below(8) + 1;
                self.nest(input, levels);
            }
            _ => input.truncate(here.end),
        }
    }

    /// Makes one part of an input longer by about so many bytes.
    fn stretch(&mut self, input: &mut Vec<u8>, bytes: usize) {
        let here = self.part(input);
        if here.is_empty() {
            return;
        }
        let times = bytes / here.len();
        match self.below(4) {
            0 => {
                let levels = self.below(LEVELS) + 1;
                self.nest(input, levels);
            }
            // as it is, so that keys repeat; and numbered, so that they differ
            1 | 2 => {
                let part = input[here.clone()].repeat(times);
                input.splice(here.start..here.start, part);
            }
            _ => {
                let part = numbered(&input[here.clone()], times / 2);
                input.splice(here.start..here.start, part);
            }
        }
    }

    /// Puts a bracketed part into itself again and again: of `{"a":[1]}` and `[1]` becomes
    /// `{"a":{"a":[1]}}`.
    fn nest(&mut self, input: &mut Vec<u8>, levels: usize) {
        let brackets = brackets(input);
        if brackets.is_empty() {
            return;
        }
        let outer = brackets[self.below(brackets.len())].clone();
        let within = |inner: &&Range<usize>| inner.start > outer.start && inner.end < outer.end;
        let inside: Vec<_> = brackets.iter().filter(within).collect();
        let inner = match inside.len() {
            0 => outer.end - 1..outer.end - 1,
            len => inside[self.below(len)].clone(),
        };
        let before = input[outer.start..inner.start].repeat(levels);
        let after = input[inner.end..outer.end].repeat(levels);
        let nested = [&before[..], &input[inner], &after[..]].concat();
        input.splice(outer, nested);
    }

    /// A part of an input: mostly one that begins and ends behind punctuation, such as a member with its
    /// comma.
    fn part(&mut self, input: &[u8]) -> Range<usize> {
        if input.is_empty() {
            return 0..0;
        }
        if self.below(4) == 0 {
            let start = self.below(input.len());
            let len = self.below(input.len() - start) + 1;
            return start..start + len.min(16);
        }
        let start = self.below(input.len());
        let borders: Vec<_> = (start..input.len())
            .filter(|at| PUNCTUATION.contains(&input[*at]))
            .map(|at| at + 1)
            .take(12)
            .collect();
        match borders.len() {
            0 | 1 => start..input.len(),
            len => {
                let first = self.below(len - 1);
                let last = first + 1 + self.below(len - 1 - first);
                borders[first]..borders[last]
            }
        }
    }

    fn word(&mut self) -> &'static [u8] {
        let number = self.below(self.words.len());
        self.words[number]
    }

    fn file(&mut self) -> &'a [u8] {
        let number = self.below(self.corpus.len());
        self.corpus[number]
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end)
    }
}

/// The next run of digits, with its sign.
fn digits_after(input: &[u8], from: usize) -> Option<Range<usize>> {
    let start = from + input[from..].iter().position(u8::is_ascii_digit)?;
    let len = input[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    Some(start..start + len)
}

/// A part so many times, with a number in each that is not in the others: behind its first word.
fn numbered(part: &[u8], times: usize) -> Vec<u8> {
    let word = part.iter().position(u8::is_ascii_alphanumeric).unwrap_or(0);
    let rest = part[word..]
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric());
    let at = rest.map_or(part.len(), |rest| word + rest);
    let mut out = Vec::new();
    for number in 0..times {
        out.extend_from_slice(&part[..at]);
        out.extend_from_slice(number.to_string().as_bytes());
        out.extend_from_slice(&part[at..]);
    }
    out
}

/// The bracketed parts of an input.
fn brackets(input: &[u8]) -> Vec<Range<usize>> {
    let (mut open, mut found) = (Vec::new(), Vec::new());
    for (at, byte) in input.iter().enumerate() {
        match byte {
            b'{' | b'[' => open.push(at),
            b'}' | b']' => found.extend(open.pop().map(|start| start..at + 1)),
            _ => {}
        }
    }
    found
}

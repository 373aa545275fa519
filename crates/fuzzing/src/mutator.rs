//! Mutates inputs of the corpus.
//!
//! The mutator relies only on features that most formats share: punctuation separates parts, brackets nest, and digits
//! form numbers. Most mutated inputs are nearly valid.

use std::ops::Range;

use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _};

use super::input::SEPARATOR;

/// Maximum size of most inputs. Small inputs run faster, so more of them can be tried.
const SMALL_BYTES: usize = 4_096;
/// Size of stretched inputs, large enough to expose code with a quadratic cost.
const LARGE_BYTES: Range<usize> = 20_000..200_000;
/// Nesting depth that exceeds the limit of every parser.
const LEVELS: usize = 600;

const PUNCTUATION: &[u8] = b"{}[](),:;\"'=&?%/.+-*$~ \t\r\n";

/// Bytes and words that parsers of various formats are known to mishandle, separated by `|`.
const WORDS: &[u8] = b"null|true|{}|[]|\"\"|{\"\":|[[|\"a\":|,|:|\"|\\|\\\\|\\\"|\\u0000|\\u0061|\\ud83d\
    |\\ude00|\\ud83d\\ude00|\\/|1e400|-0|1.0|0|-|*|\xff|\0|\x1f|\x7f|\xc3\xa9|\xf0\x9f\x98\x80|\xef\xbb\xbf\
    |%|%2|%00|%ff|%2B|+|&|=|;|; |, |\n|\r|\r\n|\n---\n|*-1\r\n|$-1\r\n|*1\r\n|%1\r\n|_\r\n|127.0.0.1|::1\
    |[::1]:80|W/\"1\"|__proto__";

/// Numbers at the limits of types and settings.
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

    pub(super) fn mutated(&mut self) -> Vec<u8> {
        let mut input = self.file().to_vec();
        for _ in 0..self.below(6) + 1 {
            self.change(&mut input);
        }
        input.truncate(SMALL_BYTES);
        input
    }

    /// Returns a corpus file with repeated or nested parts, sometimes after another change. May stretch parts of
    /// several sections, because some code is slow only if two sections are long.
    pub(super) fn stretched(&mut self) -> Vec<u8> {
        let mut input = self.file().to_vec();
        if self.below(4) == 0 {
            self.change(&mut input);
        }
        let bytes = self.random.random_range(LARGE_BYTES);
        let sections = sections(&input);
        for section in sections.iter().rev() {
            let stretches = self.below(3);
            for _ in 0..stretches {
                let mut text = input[section.clone()].to_vec();
                self.stretch(&mut text, bytes / sections.len() / stretches);
                input.splice(section.clone(), text);
            }
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let range = self.part(input);
        match self.below(11) {
            0 => {
                let word = self.word();
                input.splice(range.start..range.start, word.iter().copied());
            }
            1 => {
                let word = self.word();
                input.splice(range, word.iter().copied());
            }
            2 => {
                if let Some(byte) = input.get_mut(range.start) {
                    *byte = self.random.next_u32() as u8;
                }
            }
            3 => {
                input.drain(range);
            }
            4 => {
                let times = self.below(4) + 1;
                let part = input[range.clone()].repeat(times);
                input.splice(range.start..range.start, part);
            }
            5 | 6 => {
                let other = self.file();
                let source = self.part(other);
                input.splice(range, other[source].iter().copied());
            }
            7 => {
                // copies a part of this input to another position
                let target = self.part(input);
                let part = input[range].to_vec();
                input.splice(target, part);
            }
            8 => {
                if let Some(digits) = digits_after(input, range.start) {
                    let index = self.below(self.numbers.len());
                    let number = self.numbers[index];
                    input.splice(digits, number.bytes());
                }
            }
            9 => {
                let levels = self.below(8) + 1;
                self.nest(input, levels);
            }
            _ => input.truncate(range.end),
        }
    }

    fn stretch(&mut self, input: &mut Vec<u8>, bytes: usize) {
        match self.below(6) {
            0 => {
                let levels = self.below(LEVELS) + 1;
                self.nest(input, levels);
            }
            1 | 2 => {
                let members = members(input);
                if let Some(member) = self.one_of(&members) {
                    let text = [&input[member.clone()], b","].concat();
                    let text = self.repeated(&text, bytes);
                    input.splice(member.start..member.start, text);
                }
            }
            3 | 4 => {
                let strings = strings(input);
                if let Some(string) = self.one_of(&strings) {
                    let text = match &input[string.clone()] {
                        b"" => b"x",
                        text => text,
                    };
                    let text = text.repeat(bytes / text.len());
                    input.splice(string, text);
                }
            }
            _ => {
                let range = self.part(input);
                let text = self.repeated(&input[range.clone()], bytes);
                input.splice(range.start..range.start, text);
            }
        }
    }

    /// Repeats `text` until it is about `bytes` long, either unchanged or with numbers that make its keys unique.
    fn repeated(&mut self, text: &[u8], bytes: usize) -> Vec<u8> {
        let times = bytes / text.len().max(1);
        match self.below(2) {
            0 => text.repeat(times),
            _ => numbered(text, times / 2),
        }
    }

    /// Nests a bracketed part more deeply by repeating the text around it: `{"a":[1]}` becomes `{"a":{"a":[1]}}`.
    fn nest(&mut self, input: &mut Vec<u8>, levels: usize) {
        let brackets = brackets(input);
        let Some(outer) = self.one_of(&brackets) else {
            return;
        };
        let within = |inner: &&Range<usize>| inner.start > outer.start && inner.end < outer.end;
        let inside: Vec<_> = brackets.iter().filter(within).cloned().collect();
        let inner = self.one_of(&inside);
        let inner = inner.unwrap_or(outer.end - 1..outer.end - 1);
        let before = input[outer.start..inner.start].repeat(levels);
        let after = input[inner.end..outer.end].repeat(levels);
        let nested = [&before[..], &input[inner], &after[..]].concat();
        input.splice(outer, nested);
    }

    /// Chooses a part of an input. The part is usually delimited by punctuation, such as a member with its comma.
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

    fn one_of(&mut self, parts: &[Range<usize>]) -> Option<Range<usize>> {
        let index = self.below(parts.len().max(1));
        parts.get(index).cloned()
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end)
    }
}

fn digits_after(input: &[u8], from: usize) -> Option<Range<usize>> {
    let start = from + input[from..].iter().position(u8::is_ascii_digit)?;
    let len = input[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    Some(start..start + len)
}

/// Repeats a part `times` times, each time with a different number after its first word.
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

fn sections(input: &[u8]) -> Vec<Range<usize>> {
    let separators = memchr::memmem::find_iter(input, SEPARATOR);
    let mut start = 0;
    let mut sections: Vec<_> = separators
        .map(|at| std::mem::replace(&mut start, at + SEPARATOR.len())..at)
        .collect();
    sections.push(start..input.len());
    sections
}

/// Returns members and elements, without the following comma.
fn members(input: &[u8]) -> Vec<Range<usize>> {
    let (mut open, mut found) = (Vec::new(), Vec::new());
    let (mut start, mut is_string) = (0, false);
    for (at, byte) in input.iter().enumerate() {
        match byte {
            b'"' if at == 0 || input[at - 1] != b'\\' => is_string = !is_string,
            _ if is_string => {}
            b'{' | b'[' => {
                open.push(start);
                start = at + 1;
            }
            b',' | b'}' | b']' => {
                if start < at {
                    found.push(start..at);
                }
                start = match byte {
                    b',' => at + 1,
                    _ => open.pop().unwrap_or(at + 1),
                };
            }
            _ => {}
        }
    }
    found
}

fn strings(input: &[u8]) -> Vec<Range<usize>> {
    let is_quote = |at: &usize| input[*at] == b'"' && (*at == 0 || input[at - 1] != b'\\');
    let quotes: Vec<_> = (0..input.len()).filter(is_quote).collect();
    let (pairs, _) = quotes.as_chunks::<2>();
    pairs.iter().map(|[open, close]| open + 1..*close).collect()
}

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

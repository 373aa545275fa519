//! Handles JSON as opaque text, validated and stripped of white space. Parsing into values would lose repeated keys,
//! lone surrogate escapes and the exact text of numbers. The API preserves all of these.

use std::fmt;

use memchr::memchr2;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{Heap, heap};

/// Maximum nesting depth of a value.
pub const MAX_DEPTH: usize = 512;

/// Maximum number of nesting levels that this crate adds around a stored value.
const EXTRA_LEVELS_MAX: usize = 8;

/// A JSON value as compact text. Except for removed white space, the text is exactly what the client sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Box<str>);

/// Invalid JSON, with the position of the first error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at line {line} column {column}")]
pub struct JsonError {
    /// The reason.
    pub reason: &'static str,
    /// Line number, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
}

impl Heap for Json {
    fn heap_bytes(&self) -> u64 {
        heap::block(self.0.len())
    }
}

impl Json {
    /// Parses exactly one value of up to [`MAX_DEPTH`] levels.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        compact(text, b',', MAX_DEPTH).map(Self)
    }

    /// Parses an object whose values may each have up to [`MAX_DEPTH`] levels. `around` is the number of levels that
    /// enclose the values, at least 1.
    pub fn parse_object(text: &str, around: usize) -> Result<Self, ObjectError> {
        let json = Self(compact(text, b',', MAX_DEPTH + around)?);
        if json.is_object() {
            Ok(json)
        } else {
            Err(ObjectError::NotAnObject)
        }
    }

    /// Returns `{}`.
    #[must_use]
    pub fn empty_object() -> Self {
        Self("{}".into())
    }

    /// Returns whether the value is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    /// Returns the compact text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Creates an array of strings.
    #[must_use]
    pub fn from_strings(strings: &[String]) -> Self {
        Self::from_compact(serde_json::Value::from(strings).to_string())
    }

    #[doc(hidden)]
    pub fn from_compact(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }
}

/// Serializes the value itself, not a string.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Accepts any JSON value and drops white space. Allows `EXTRA_LEVELS_MAX` more levels than [`Json::parse`].
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let compact = compact(raw.get(), b',', MAX_DEPTH + EXTRA_LEVELS_MAX);
        compact.map(Self).map_err(serde::de::Error::custom)
    }
}

pub(crate) fn is_deeper_than(levels: usize, json: &str) -> bool {
    // each level has two brackets
    json.len() > 2 * levels && deepest(json.as_bytes()) > levels
}

fn deepest(json: &[u8]) -> usize {
    let (mut level, mut deepest, mut at) = (0_usize, 0, 0);
    while let Some(byte) = json.get(at) {
        match byte {
            b'{' | b'[' => level += 1,
            b'}' | b']' => level -= 1,
            b'"' => at += end_of_string(&json[at + 1..]),
            _ => {}
        }
        deepest = deepest.max(level);
        at += 1;
    }
    deepest
}

fn end_of_string(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = rest.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        if rest[at - 1] == b'"' {
            break;
        }
        at += 1;
    }
    at
}

/// Text that is not one JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// Invalid JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// Valid JSON, but not an object.
    #[error("expected a JSON object")]
    NotAnObject,
}

/// Keeps state out of logs.
impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.0.len())
    }
}

impl JsonError {
    /// Locates an error at a byte of `text`.
    #[must_use]
    pub fn at(reason: &'static str, text: &[u8], offset: usize) -> Self {
        let before = &text[..offset.min(text.len())];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        Self {
            reason,
            line: 1 + memchr::memchr_iter(b'\n', before).count(),
            column: 1 + before.len() - line_start,
        }
    }
}

/// Drops white space. If the outermost value is an array, writes `separator` between its elements. A line feed as the
/// separator lets readers find the elements without parsing, because compact JSON contains no other line feeds.
pub(crate) fn compact(text: &str, separator: u8, max_depth: usize) -> Result<Box<str>, JsonError> {
    let mut scanner = Scanner {
        text: text.as_bytes(),
        at: 0,
        out: Vec::with_capacity(text.len()),
        open: Vec::new(),
        separator,
        max_depth,
    };
    scanner
        .document()
        .map_err(|reason| JsonError::at(reason, text.as_bytes(), scanner.at))?;
    let compact = String::from_utf8(scanner.out).expect("whole characters were copied");
    Ok(compact.into_boxed_str())
}

type Fault = &'static str;

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    out: Vec<u8>,
    /// The closing brackets that are still missing. This stack replaces recursion.
    open: Vec<u8>,
    separator: u8,
    max_depth: usize,
}

impl Scanner<'_> {
    fn document(&mut self) -> Result<(), Fault> {
        self.value()?;
        while let Some(&close) = self.open.last() {
            self.white_space();
            match self.text.get(self.at) {
                Some(b',') => {
                    self.at += 1;
                    let between = if self.open.len() == 1 && close == b']' {
                        self.separator
                    } else {
                        b','
                    };
                    self.out.push(between);
                    if close == b'}' {
                        self.member_key()?;
                    }
                    self.value()?;
                }
                Some(byte) if *byte == close => self.close(),
                Some(_) if close == b'}' => return Err("expected `,` or `}`"),
                Some(_) => return Err("expected `,` or `]`"),
                None => return Err("unexpected end of JSON"),
            }
        }
        self.white_space();
        if self.at < self.text.len() {
            return Err("text after the value");
        }
        Ok(())
    }

    /// Reads the start of a value: any opening brackets and keys, up to the end of the first scalar or empty container.
    fn value(&mut self) -> Result<(), Fault> {
        loop {
            self.white_space();
            match self.text.get(self.at) {
                Some(b'{') => {
                    self.open(b'{', b'}')?;
                    self.white_space();
                    if self.text.get(self.at) == Some(&b'}') {
                        self.close();
                        return Ok(());
                    }
                    self.member_key()?;
                }
                Some(b'[') => {
                    self.open(b'[', b']')?;
                    self.white_space();
                    if self.text.get(self.at) == Some(&b']') {
                        self.close();
                        return Ok(());
                    }
                }
                Some(b'"') => return self.string(),
                Some(b'-' | b'0'..=b'9') => return self.number(),
                Some(b't') => return self.word("true"),
                Some(b'f') => return self.word("false"),
                Some(b'n') => return self.word("null"),
                Some(_) => return Err("expected a value"),
                None => return Err("unexpected end of JSON"),
            }
        }
    }

    fn open(&mut self, bracket: u8, close: u8) -> Result<(), Fault> {
        if self.open.len() == self.max_depth {
            return Err("nested deeper than 512 levels");
        }
        self.open.push(close);
        self.out.push(bracket);
        self.at += 1;
        Ok(())
    }

    fn close(&mut self) {
        self.out.extend(self.open.pop());
        self.at += 1;
    }

    fn member_key(&mut self) -> Result<(), Fault> {
        self.white_space();
        if self.text.get(self.at) != Some(&b'"') {
            return Err("expected a key in quotes");
        }
        self.string()?;
        self.white_space();
        if self.text.get(self.at) != Some(&b':') {
            return Err("expected `:`");
        }
        self.at += 1;
        self.out.push(b':');
        Ok(())
    }

    fn string(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let run = memchr2(b'"', b'\\', rest).ok_or("unexpected end of JSON")?;
            if rest[..run]
                .iter()
                .fold(false, |bad, byte| bad | (*byte < 0x20))
            {
                self.at += rest.iter().position(|byte| *byte < 0x20).unwrap_or(0);
                return Err("control character in a string");
            }
            self.at += run + 1;
            if rest[run] == b'"' {
                self.out.extend_from_slice(&self.text[start..self.at]);
                return Ok(());
            }
            self.escape()?;
        }
    }

    /// Reads the rest of an escape sequence, after the backslash. Accepts escapes of lone surrogates.
    fn escape(&mut self) -> Result<(), Fault> {
        match self.text.get(self.at) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                let digits = self.text.get(self.at + 1..self.at + 5);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err("`\\u` without four hex digits");
                }
                self.at += 5;
            }
            Some(_) => return Err("unknown escape in a string"),
            None => return Err("unexpected end of JSON"),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        let start = self.at;
        if self.text[self.at] == b'-' {
            self.at += 1;
        }
        if self.text.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        self.out.extend_from_slice(&self.text[start..self.at]);
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start {
            return Err("expected a digit");
        }
        Ok(())
    }

    fn word(&mut self, word: &'static str) -> Result<(), Fault> {
        if !self.text[self.at..].starts_with(word.as_bytes()) {
            return Err("expected a value");
        }
        self.at += word.len();
        self.out.extend_from_slice(word.as_bytes());
        Ok(())
    }

    fn white_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.text.get(self.at) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests;

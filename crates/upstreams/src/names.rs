use std::borrow::Cow;
use std::collections::HashMap;

/// Maximum size of a function name or a call id.
const MAX_BYTES: usize = 64;
/// Bytes reserved for a numeric suffix.
const SUFFIX_BYTES: usize = 12;

/// Maps each string to a unique string that consists only of `A-Za-z0-9_-`.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Encoded strings by original string. `original` is the inverse map.
    sent: HashMap<String, String>,
    original: HashMap<String, String>,
    /// The last suffix number used for each prefix.
    suffixes: HashMap<String, u64>,
}

impl Names {
    pub(super) fn encode(&mut self, original: &str) -> String {
        self.encode_within(original, MAX_BYTES)
    }

    fn encode_within(&mut self, original: &str, max_bytes: usize) -> String {
        if let Some(sent) = self.sent.get(original) {
            return sent.clone();
        }
        let mut sent = plain(original, max_bytes);
        let kept = max_bytes.saturating_sub(SUFFIX_BYTES).min(sent.len());
        let begin = sent[..kept].to_owned();
        while self.original.contains_key(&sent) {
            let count = self.suffixes.entry(begin.clone()).or_default();
            *count += 1;
            sent = format!("{begin}-{count}");
        }
        self.sent.insert(original.into(), sent.clone());
        self.original.insert(sent.clone(), original.into());
        sent
    }

    /// Returns the original of a string that was sent upstream, or `sent` itself if the original is unknown.
    pub(super) fn original<'a>(&'a self, sent: &'a str) -> &'a str {
        self.original.get(sent).map_or(sent, String::as_str)
    }
}

/// Replaces all characters outside `A-Za-z0-9_-` with `_`. The result is never empty.
fn plain(text: &str, max_bytes: usize) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    let text: Cow<'_, str> = match text.is_empty() {
        true => "unknown".into(),
        false => text.into(),
    };
    let chars = text.chars().take(max_bytes);
    chars
        .map(|char| if is_plain(char) { char } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_valid_and_stay_distinct() {
        let mut names = Names::default();
        let long = "0123456789abcdef0123";
        let all = [
            "kv.get",
            "kv_get",
            "",
            "ä b",
            "kv.get",
            "kv/get",
            "kv_get-1",
            long,
            &long[..19],
        ];

        let sent = all.map(|name| names.encode_within(name, 18));

        let expected = [
            "kv_get",
            "kv_get-1",
            "unknown",
            "__b",
            "kv_get",
            "kv_get-2",
            "kv_get-3",
            &long[..18],
            "012345-1",
        ];
        assert_eq!(sent, expected);
        for (name, sent) in all.iter().zip(&sent) {
            assert_eq!(names.original(sent), *name);
        }
        assert_eq!(names.original("other"), "other");
    }
}

use std::fmt::{self, Write};

/// Untrusted text for messages and log lines. Long text is truncated, and invisible characters are escaped as in Rust
/// strings.
#[derive(Debug, Clone, Copy)]
pub struct Excerpt<'a>(pub &'a str);

impl Excerpt<'_> {
    /// Maximum number of bytes that are shown.
    pub const MAX_BYTES: usize = 64;
}

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut remaining = Self::MAX_BYTES;
        for character in self.0.chars() {
            // quotes are not escaped, because the text is not enclosed in quotes
            let is_plain = matches!(character, '\'' | '"') || character.is_ascii_alphanumeric();
            let bytes = match is_plain {
                true => 1,
                false => character.escape_debug().map(char::len_utf8).sum(),
            };
            if bytes > remaining {
                return f.write_str("...");
            }
            remaining -= bytes;
            match is_plain {
                true => f.write_char(character)?,
                false => write!(f, "{}", character.escape_debug())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        Excerpt(text).to_string()
    }

    #[test]
    fn text_is_escaped_onto_one_line() {
        for (text, line) in [
            ("", ""),
            ("it's \"b\" `c` é 日本", "it's \"b\" `c` é 日本"),
            ("a\nb\r\0\u{1b}[2K", r"a\nb\r\0\u{1b}[2K"),
            ("a\\nb", r"a\\nb"),
            (
                "\u{2028}\u{202e}\u{feff}\u{85}",
                r"\u{2028}\u{202e}\u{feff}\u{85}",
            ),
        ] {
            assert_eq!(shown(text), line);
        }
    }

    #[test]
    fn long_text_is_truncated() {
        assert_eq!(shown(&"a".repeat(64)), "a".repeat(64));
        assert_eq!(shown(&"a".repeat(65)), format!("{}...", "a".repeat(64)));
        assert_eq!(shown(&"é".repeat(33)), format!("{}...", "é".repeat(32)));
        assert_eq!(shown(&"\n".repeat(33)), format!("{}...", r"\n".repeat(32)));
    }

    proptest! {
        #[test]
        fn output_has_no_control_characters_and_a_bounded_length(text in any::<String>()) {
            let shown = shown(&text);

            prop_assert!(!shown.chars().any(char::is_control));
            prop_assert!(shown.len() <= Excerpt::MAX_BYTES + "...".len());
        }
    }
}

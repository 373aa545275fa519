use crate::json::parse;
use threadkeep_domain::member;

/// Reads `input_tokens` from a token count response of OpenAI's or Anthropic's API.
pub(super) fn read_count(body: &[u8]) -> Option<u64> {
    member(parse(body)?.as_str(), "input_tokens")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_a_whole_number() {
        for (body, count) in [
            (
                r#"{"object":"response.input_tokens","input_tokens": 11}"#,
                Some(11),
            ),
            (r#"{"input_tokens":0}"#, Some(0)),
            (r#"{"input_tokens":"1"}"#, None),
            (r#"{"input_tokens":-1}"#, None),
            ("{}", None),
            ("[]", None),
            ("<html>", None),
        ] {
            assert_eq!(read_count(body.as_bytes()), count, "{body}");
        }
    }
}

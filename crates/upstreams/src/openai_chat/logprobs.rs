use crate::answer::output_text_with;
use crate::json::{Object, array, escaped_member};
use threadkeep_domain::{Json, elements, member, member_elements};
use threadkeep_responses::AnswerPart;

/// Log probabilities of the tokens received so far, in the format of the Responses API.
#[derive(Debug, Default)]
pub(super) struct Logprobs(Vec<String>);

impl Logprobs {
    /// Adds the log probabilities of a choice or a chunk, and returns their size in bytes. Skips malformed tokens.
    pub(super) fn add(&mut self, choice: &str) -> usize {
        let logprobs = member(choice, "logprobs").unwrap_or_default();
        let tokens = member_elements(logprobs, "content");
        let before = self.0.len();
        self.0.extend(tokens.filter_map(|token| {
            let top = member_elements(token, "top_logprobs");
            let top = top.filter_map(|token| Some(token_object(token)?.close()));
            let top: Vec<_> = top.collect();
            Some(
                token_object(token)?
                    .json("top_logprobs", &array(&top))
                    .close(),
            )
        }));
        self.0[before..].iter().map(String::len).sum()
    }

    /// Adds the log probabilities to the text of the first message.
    pub(super) fn put_into(&self, parts: &mut [AnswerPart]) {
        let content = parts.iter_mut().find_map(|part| match part {
            AnswerPart::Message(content) => Some(content),
            _ => None,
        });
        let Some(content) = content.filter(|_| !self.0.is_empty()) else {
            return;
        };
        let logprobs = array(&self.0);
        let with_logprobs =
            elements(content.as_str()).map(|part| match escaped_member(part, "type") {
                Some("output_text") => {
                    output_text_with(member(part, "text").unwrap_or("\"\""), &logprobs)
                }
                _ => part.to_owned(),
            });
        *content = Json::from_compact(array(&with_logprobs.collect::<Vec<_>>()));
    }
}

fn token_object(token: &str) -> Option<Object> {
    let text = member(token, "token").filter(|text| text.starts_with('"'))?;
    let is_number = |value: &&str| !value.starts_with(['"', '{', '[', 't', 'f', 'n']);
    let logprob = member(token, "logprob").filter(is_number)?;
    let bytes = member(token, "bytes").filter(|bytes| bytes.starts_with('['));
    let token = Object::new().json("token", text).json("logprob", logprob);
    Some(token.json("bytes", bytes.unwrap_or("[]")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICE: &str = r#"{"logprobs":{"content":[{"token":"H\u00e9","logprob":-0.50,"bytes":[72,195,169],"top_logprobs":[{"token":"Ha","logprob":-1e3,"bytes":null},7]},{"token":"!","logprob":null}],"refusal":null}}"#;
    const CONVERTED: &str = r#"[{"token":"H\u00e9","logprob":-0.50,"bytes":[72,195,169],"top_logprobs":[{"token":"Ha","logprob":-1e3,"bytes":[]}]}]"#;

    fn message(json: &str) -> AnswerPart {
        AnswerPart::Message(Json::parse(json).unwrap())
    }

    #[test]
    fn the_message_text_has_the_logprobs_of_all_chunks() {
        let mut logprobs = Logprobs::default();
        let item = AnswerPart::Item(Json::empty_object());
        let text = r#"{"type":"output_text","text":"a\n","annotations":[],"logprobs":[]}"#;
        let refusal = r#"{"type":"refusal","refusal":"no"}"#;
        let mut parts = [item.clone(), message(&format!("[{text},{refusal}]"))];

        let bytes = logprobs.add(CHOICE);
        logprobs.put_into(&mut parts);

        assert_eq!(bytes, CONVERTED.len() - 2);
        let text = text.replace(r#""logprobs":[]"#, &format!(r#""logprobs":{CONVERTED}"#));
        assert_eq!(parts, [item, message(&format!("[{text},{refusal}]"))]);
    }

    #[test]
    fn an_answer_without_logprobs_is_unchanged() {
        for choice in [
            "7",
            "{}",
            r#"{"logprobs":null}"#,
            r#"{"logprobs":{"content":[7,{},{"token":7,"logprob":1},{"token":"a"}]}}"#,
        ] {
            let mut logprobs = Logprobs::default();
            let mut parts = [message(r#"[{"type":"output_text","text":"a","new":1}]"#)];
            let before = parts.clone();

            assert_eq!(logprobs.add(choice), 0, "{choice}");
            logprobs.put_into(&mut parts);

            assert_eq!(parts, before);
        }
    }
}

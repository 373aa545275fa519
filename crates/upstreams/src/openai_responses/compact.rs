use super::input::input;
use super::output::usage;
use crate::json::{Object, array, escaped_member, parse};
use crate::names::Names;
use threadkeep_domain::{Json, elements, member, quoted};
use threadkeep_responses::{CompactedPrompt, Question};

pub(super) fn write(question: &Question<'_>) -> String {
    let items = array(&input(question, &mut Names::default()));
    let instructions = question.instructions.map(quoted);
    Object::new()
        .text("model", question.model)
        .optional("instructions", instructions.as_deref())
        .json("input", &items)
        .close()
}

pub(super) fn read(body: &[u8]) -> Option<CompactedPrompt> {
    let body = parse(body)?;
    let body = body.as_str();
    let output: Vec<_> = elements(member(body, "output")?)
        .map(|item| item.starts_with('{').then(|| Json::from_compact(item)))
        .collect::<Option<_>>()?;
    let is_compaction = |item: &Json| {
        escaped_member(item.as_str(), "type") == Some("compaction")
            && escaped_member(item.as_str(), "encrypted_content").is_some()
    };
    output.iter().any(is_compaction).then(|| CompactedPrompt {
        usage: usage(body),
        output,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_must_contain_a_compaction() {
        let message = r#"{"type":"message","role":"user","content":[]}"#;
        let compaction = r#"{"id":"cmp_1","type":"compaction","encrypted_content":"gAAAA"}"#;
        for (output, is_read) in [
            (format!("[{message},{compaction}]"), true),
            (format!("[{compaction}]"), true),
            (format!("[{message}]"), false),
            (format!("[7,{compaction}]"), false),
            (r#"[{"type":"compaction"}]"#.into(), false),
            ("[]".into(), false),
            ("{}".into(), false),
        ] {
            let body = format!(r#"{{"output": {output}, "usage": {{"input_tokens": 7}}}}"#);

            let read = read(body.as_bytes());

            assert_eq!(read.is_some(), is_read, "{output}");
            assert!(read.is_none_or(|read| read.usage.input_tokens == 7));
        }
        assert_eq!(super::read(b"<html>"), None);
    }
}

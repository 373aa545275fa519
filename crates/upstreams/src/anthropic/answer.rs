use super::blocks::Blocks;
use crate::answer::read_body;
use crate::client::Failure;
use crate::json::escaped_member;
use crate::names::Names;
use threadkeep_domain::{Usage, member, member_elements};
use threadkeep_responses::{Finish, ModelAnswer};

/// Parses a complete answer. Ignores unknown fields and fields of unexpected types.
pub(super) fn read(body: &[u8], names: &Names) -> Result<ModelAnswer, Failure> {
    let body = read_body(body)?;
    let body = body.as_str();
    // the size of the body is already limited
    let mut blocks = Blocks::new(names, u64::MAX);
    for block in member_elements(body, "content") {
        blocks.begin("", block)?;
        blocks.end_block("")?;
        blocks.pieces().clear();
    }
    let mut ending = Ending::default();
    ending.read_usage(body);
    ending.read_reason(body);
    let (answer, _) = blocks.end(ending)?;
    Ok(answer)
}

#[derive(Debug, Default)]
pub(super) struct Ending {
    finish: Option<Finish>,
    input: u64,
    cache_creation: u64,
    cache_read: u64,
    output: u64,
    thinking: u64,
}

impl Ending {
    pub(super) fn read_reason(&mut self, value: &str) {
        let Some(reason) = escaped_member(value, "stop_reason") else {
            return;
        };
        self.finish = Some(match reason {
            "max_tokens" | "model_context_window_exceeded" => Finish::MaxOutputTokens,
            "refusal" => Finish::ContentFilter,
            _ => Finish::Done,
        });
    }

    /// Reads `usage`, which contains running totals. If a total is missing, keeps its previous value.
    pub(super) fn read_usage(&mut self, value: &str) {
        let usage = member(value, "usage").unwrap_or_default();
        let details = member(usage, "output_tokens_details").unwrap_or_default();
        for (object, name, count) in [
            (usage, "input_tokens", &mut self.input),
            (
                usage,
                "cache_creation_input_tokens",
                &mut self.cache_creation,
            ),
            (usage, "cache_read_input_tokens", &mut self.cache_read),
            (usage, "output_tokens", &mut self.output),
            (details, "thinking_tokens", &mut self.thinking),
        ] {
            if let Some(read) = member(object, name).and_then(|number| number.parse().ok()) {
                *count = read;
            }
        }
    }

    pub(super) fn finish(&self) -> Finish {
        self.finish.unwrap_or(Finish::Done)
    }

    /// Returns the usage. As in OpenAI's APIs, cached tokens count as input.
    pub(super) fn usage(&self) -> Usage {
        let cached = self.cache_creation.saturating_add(self.cache_read);
        Usage {
            input_tokens: self.input.saturating_add(cached),
            cached_tokens: self.cache_read,
            output_tokens: self.output,
            reasoning_tokens: self.thinking,
        }
    }
}

#[cfg(test)]
mod tests;

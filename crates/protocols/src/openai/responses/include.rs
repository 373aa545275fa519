//! Reads `include`: the list of optional details that the output of a response should contain.

use crate::openai::body::string;
use crate::openai::fault::Fault;
use threadkeep_domain::elements;

const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";
const LOGPROBS: &str = "message.output_text.logprobs";
const SEARCH_SOURCES: &str = "web_search_call.action.sources";
/// Details that this server's items always contain, or that belong to tools that this server does not offer. These
/// details are accepted, because clients request them even if they do not use the tools.
static OTHERS: [&str; 5] = [
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "web_search_call.results",
];

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Include {
    /// Encrypted reasoning. A later request can send it back, so that the upstream does not need to store it.
    pub(super) encrypted_reasoning: bool,
    pub(super) logprobs: bool,
    /// The URLs of all search results.
    pub(super) search_sources: bool,
}

impl Include {
    pub(super) fn read(include: Option<&str>) -> Result<Self, Fault> {
        let mut read = Self::default();
        let Some(include) = include else {
            return Ok(read);
        };
        if !include.starts_with('[') {
            return Err(Fault::wrong_type("include", "an array of strings"));
        }
        for (index, name) in elements(include).enumerate() {
            let at = format!("include[{index}]");
            match string(name, &at)?.as_str() {
                ENCRYPTED_REASONING => read.encrypted_reasoning = true,
                LOGPROBS => read.logprobs = true,
                SEARCH_SOURCES => read.search_sources = true,
                name if OTHERS.contains(&name) => {}
                _ => {
                    let known = [ENCRYPTED_REASONING, LOGPROBS, SEARCH_SOURCES];
                    let known: Vec<_> = known.iter().chain(&OTHERS).copied().collect();
                    let expected = format!("one of {}", known.join(", "));
                    return Err(Fault::wrong_value(at, &expected));
                }
            }
        }
        Ok(read)
    }
}

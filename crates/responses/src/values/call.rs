use super::course::Course;
use super::items::executed_call;
use super::request::ResponseRequest;
use super::stateless::{self, StatelessOutcome};
use threadkeep_domain::Json;
use threadkeep_service::tools::{Outcome, StatelessTool, Tool};

/// Server label in items for calls to unknown tools, if the request does not name a tool server.
const NO_LABEL: &str = "threadkeep";
/// Maximum length of a function name that upstreams accept, in characters.
const NAME_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingCall {
    /// Id by which the upstream matches results to calls.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// Index among the calls of the response.
    pub(crate) number: u32,
    /// One-based number of the answer that contains the call.
    pub(crate) step: u32,
    /// Index of the call's item. `None` if the client runs the call or an older version wrote the journal entry.
    pub(crate) index: Option<u64>,
}

pub(crate) fn call_item(
    request: &ResponseRequest,
    course: &Course,
    index: u64,
    call: &PendingCall,
) -> Json {
    if request.is_for_client(&call.name) {
        return course.client_call(request, index, call);
    }
    match request.stateless.find(&call.name) {
        Some(tool) => {
            let nothing = StatelessOutcome::Mistake(String::new());
            stateless_item_of(request, course, index, (tool, call), &nothing)
        }
        None => {
            let nothing = Outcome::Mistake(String::new());
            item_of(request, course, index, call, &nothing)
        }
    }
}

/// Creates the item for a call to a state tool or an unknown tool.
pub(crate) fn item_of(
    request: &ResponseRequest,
    course: &Course,
    index: u64,
    call: &PendingCall,
    outcome: &Outcome,
) -> Json {
    let tools = request.state_tools.as_ref();
    let label = tools.map_or(NO_LABEL, |tools| tools.label.as_str());
    let id = course.item_id(request, "mcp_", index);
    let call = PendingCall {
        name: sendable(&call.name),
        ..call.clone()
    };
    executed_call(&id, label, &call, outcome)
}

/// Converts a function name to one that upstreams accept in prompts.
pub(crate) fn sendable(name: &str) -> String {
    if let Ok(tool) = name.parse::<Tool>() {
        return tool.as_str().into();
    }
    let is_plain = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    let name: String = name.chars().filter(is_plain).take(NAME_MAX).collect();
    match name.is_empty() {
        true => "unknown".into(),
        false => name,
    }
}

pub(crate) fn stateless_item_of(
    request: &ResponseRequest,
    course: &Course,
    index: u64,
    (tool, call): (StatelessTool, &PendingCall),
    outcome: &StatelessOutcome,
) -> Json {
    let label = request.stateless.label_of(tool);
    let id = course.item_id(request, stateless::id_prefix(tool, label), index);
    let has_sources = request.parameters.search_sources;
    stateless::item(&id, label, (tool, call), outcome, has_sources)
}

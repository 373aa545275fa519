mod content;

use super::dialect::Dialect;
use super::reasoning::Reasoning;
use crate::content::{arguments_object, input_object, plain_text};
use crate::json::{Object, array, escaped};
pub(super) use content::accepts;
use content::content;
use threadkeep_domain::{CallForm, PromptItem, quoted};
use threadkeep_responses::Question;

/// Converts the instructions and the conversation to messages.
///
/// Omits what this API cannot express: unsupported items, media outside of user messages and, for OpenAI, reasoning.
/// The roles `system` and `developer` become `system`. Compatible servers accept only `system`, and OpenAI treats it as
/// `developer` for models that have that role.
pub(super) fn messages(question: &Question<'_>, dialect: Dialect) -> String {
    let mut messages = Messages {
        question,
        written: Vec::with_capacity(question.prompt.len() + 1),
        answer: Answer::default(),
        dialect,
    };
    if let Some(instructions) = question.instructions {
        messages.push("system", &quoted(instructions));
    }
    for item in question.prompt {
        messages.item(item);
    }
    messages.end_answer();
    array(&messages.written)
}

struct Messages<'a> {
    question: &'a Question<'a>,
    written: Vec<String>,
    answer: Answer,
    dialect: Dialect,
}

/// An unfinished assistant message. In this API, reasoning, content and calls form a single message.
#[derive(Default)]
struct Answer {
    reasoning: Reasoning,
    content: Option<String>,
    calls: Vec<String>,
}

impl Messages<'_> {
    fn item(&mut self, item: &PromptItem<'_>) {
        match item {
            PromptItem::Message {
                role,
                content: parts,
                ..
            } => match *role {
                "assistant" => self.answer(parts),
                "system" | "developer" => self.message("system", content(parts, false)),
                _ => self.message("user", content(parts, true)),
            },
            PromptItem::Reasoning(item) if self.dialect.has_reasoning() => {
                self.answer.reasoning.add(item);
            }
            PromptItem::Reasoning(_) | PromptItem::Other(_) => {}
            PromptItem::Call {
                form,
                id,
                name,
                arguments,
            } => self.call(*form, id, name, arguments),
            PromptItem::Result { id, output, .. } => self.result(id, output),
        }
    }

    fn push(&mut self, role: &'static str, content: &str) {
        let message = Object::new().text("role", role).json("content", content);
        self.written.push(message.close());
    }

    fn message(&mut self, role: &'static str, content: Option<String>) {
        self.end_answer();
        if let Some(content) = content {
            self.push(role, &content);
        }
    }

    /// Adds an assistant message. If any calls still have no result, extends the current answer instead.
    fn answer(&mut self, parts: &str) {
        let continues = !self.answer.calls.is_empty();
        if self.answer.content.is_some() && !continues {
            self.end_answer();
        }
        let new = content(parts, false);
        self.answer.content = match (self.answer.content.take(), new) {
            (Some(content), Some(new)) => Some(joined(&content, &new)),
            (content, new) => content.or(new),
        };
    }

    /// Adds a call. A call to a custom tool that the request does not declare becomes a function call, because this
    /// server may not support custom tools, unlike the upstream that made the call.
    fn call(&mut self, form: CallForm, id: &str, name: &str, arguments: &str) {
        let has_tool = self.question.form_of(name) == CallForm::Custom;
        let (kind, member, arguments) = match form {
            CallForm::Custom if has_tool => ("custom", "input", arguments.into()),
            CallForm::Custom => ("function", "arguments", input_object(arguments).into()),
            CallForm::Function if self.dialect.accepts_any_arguments() => {
                ("function", "arguments", arguments.into())
            }
            CallForm::Function => ("function", "arguments", arguments_object(arguments)),
        };
        let tool = Object::new().text("name", name).text(member, &arguments);
        let call = Object::new()
            .text("id", id)
            .text("type", kind)
            .json(kind, &tool.close());
        self.answer.calls.push(call.close());
    }

    fn result(&mut self, id: &str, output: &str) {
        self.end_answer();
        let content = match escaped(output) {
            Some(_) => output.into(),
            None if output.starts_with('[') => plain_text(output),
            None => quoted(output),
        };
        let message = Object::new()
            .json("role", "\"tool\"")
            .text("tool_call_id", id)
            .json("content", &content);
        self.written.push(message.close());
    }

    /// Writes the assistant message, unless it contains only reasoning.
    fn end_answer(&mut self) {
        let answer = std::mem::take(&mut self.answer);
        if answer.content.is_none() && answer.calls.is_empty() {
            return;
        }
        let mut message = Object::new()
            .json("role", "\"assistant\"")
            .json("content", answer.content.as_deref().unwrap_or("null"));
        message = answer.reasoning.write(message);
        if !answer.calls.is_empty() {
            message = message.json("tool_calls", &array(&answer.calls));
        }
        self.written.push(message.close());
    }
}

fn joined(one: &str, other: &str) -> String {
    let [one, other] = [one, other].map(|text| escaped(text).unwrap_or_default());
    format!("\"{one}{other}\"")
}

#[cfg(test)]
mod tests;

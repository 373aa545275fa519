//! Tracks the progress of a response, which can be rebuilt from the response's journal.

use std::collections::VecDeque;

use crate::values::call::PendingCall;
use crate::values::entry::{Entry, ItemNumbers};
use crate::values::items::{client_call, message, response_item_id, upstream_item};
use crate::values::model::{AnswerPart, Finish, Function, ModelAnswer};
use crate::values::request::ResponseRequest;
use crate::values::stateless::counted_bytes;
use crate::values::stored::Stored as _;
use threadkeep_domain::{
    CallForm, Failure, Fingerprint, Incomplete, Json, ResponseId, Status, Usage,
};
use threadkeep_store::{Journal, StoreError};

/// Index of the call's item, and the call.
type ClientCall = (u64, PendingCall);

#[derive(Debug, Clone)]
pub(crate) struct Course {
    response: ResponseId,
    /// Number of journal entries.
    pub(crate) entries: u64,
    pub(crate) next_event: u64,
    /// Index of the next item. The indexes of incomplete items are not reused.
    pub(crate) next_index: u64,
    /// Complete output items, ordered by index.
    pub(crate) output: Vec<Json>,
    /// Indexes of the items in `output`.
    indexes: Vec<u64>,
    /// Calls in the model's last answer that the server must run next.
    pub(crate) pending: VecDeque<PendingCall>,
    /// Calls in the model's last answer that the client must run. Added to the output after the server's calls.
    for_client: Vec<ClientCall>,
    pub(crate) steps: u32,
    pub(crate) calls: u32,
    /// True if the last answer contains calls for the client.
    pub(crate) has_client_calls: bool,
    pub(crate) usage: Usage,
    /// Final status of the response according to the model's last answer. `None` if the model must answer again.
    ended: Option<Status>,
    /// Why the last driver stopped.
    pub(crate) failure: Option<Failure>,
    /// Total size of input and output items without images, in bytes.
    pub(crate) bytes: u64,
}

impl Course {
    pub(crate) fn new(response: ResponseId, request: &ResponseRequest) -> Self {
        let input = request.input.iter();
        Self {
            response,
            entries: 0,
            next_event: 0,
            next_index: 0,
            output: Vec::new(),
            indexes: Vec::new(),
            pending: VecDeque::new(),
            for_client: Vec::new(),
            steps: 0,
            calls: 0,
            has_client_calls: false,
            usage: Usage::default(),
            ended: None,
            failure: None,
            bytes: input.map(|item| item.counted_bytes).sum(),
        }
    }

    pub(crate) fn replay(
        response: ResponseId,
        request: &ResponseRequest,
        journal: &Journal,
    ) -> Result<Self, StoreError> {
        let mut course = Self::new(response, request);
        for entry in &journal.entries {
            course.apply(request, Entry::read(entry)?);
        }
        course.next_event = journal.next_event;
        Ok(course)
    }

    pub(crate) fn apply(&mut self, request: &ResponseRequest, entry: Entry) {
        self.entries += 1;
        match entry {
            Entry::Answer { answer, numbers } => {
                self.failure = None;
                self.answer(request, answer, numbers);
            }
            Entry::Call { item, index } => {
                self.pending.pop_front();
                self.next_index = self.next_index.max(index + 1);
                self.push(index, item);
                self.release_client_calls(request);
            }
            Entry::Failed(failure) => self.failure = Some(failure),
        }
    }

    pub(crate) fn item_id(&self, request: &ResponseRequest, prefix: &str, index: u64) -> String {
        let number = request.input.len() as u64 + index;
        response_item_id(prefix, &self.response, request.created_ms, number)
    }

    /// Returns the call for the client at `index`, if it is held back until the server has run its own calls.
    pub(crate) fn held_call(&self, request: &ResponseRequest, index: u64) -> Option<Json> {
        let mut held = self.for_client.iter();
        let (_, call) = held.find(|(item_index, _)| *item_index == index)?;
        Some(self.client_call(request, index, call))
    }

    pub(crate) fn client_call(
        &self,
        request: &ResponseRequest,
        index: u64,
        call: &PendingCall,
    ) -> Json {
        let tool = request.client_tool(&call.name);
        let form = tool.map_or(CallForm::Function, Function::form);
        let prefix = match form {
            CallForm::Function => "fc_",
            CallForm::Custom => "ctc_",
        };
        client_call(&self.item_id(request, prefix, index), form, call)
    }

    /// Creates a call. `position` is the index of the call among the answer's calls.
    pub(crate) fn call(
        &self,
        position: u32,
        id: Option<String>,
        name: String,
        arguments: String,
    ) -> PendingCall {
        let number = self.calls + position;
        PendingCall {
            id: id.unwrap_or_else(|| self.call_id(number)),
            name,
            arguments,
            number,
            step: self.steps + 1,
            index: None,
        }
    }

    /// Returns whether the item at `index` is a call that the server still has to run.
    pub(crate) fn is_to_run(&self, index: u64) -> bool {
        self.pending.iter().any(|call| call.index == Some(index))
    }

    /// Returns the final status if the server has no calls left to run and the model does not have to answer again.
    pub(crate) fn end(&self) -> Option<&Status> {
        self.ended.as_ref().filter(|_| self.pending.is_empty())
    }

    fn answer(&mut self, request: &ResponseRequest, answer: ModelAnswer, numbers: ItemNumbers) {
        self.usage += answer.usage;
        let mut indexes = numbers.items.into_iter();
        let mut own_indexes = numbers.calls.into_iter();
        let statuses: Vec<_> = (0..answer.parts.len())
            .map(|part| answer.status_of(part))
            .collect();
        let (mut calls, mut has_calls, mut step) = (0, false, None);
        for (part, status) in answer.parts.into_iter().zip(statuses) {
            if part.is_call() {
                step = Some(self.steps + 1);
            }
            match part {
                AnswerPart::Message(content) => {
                    let index = self.take_index(&mut indexes);
                    let id = self.item_id(request, "msg_", index);
                    self.push(index, message(&id, status, step, &content));
                }
                AnswerPart::Item(item) => {
                    let index = self.take_index(&mut indexes);
                    let id = self.item_id(request, "rs_", index);
                    self.push(index, upstream_item(&id, step, &item));
                }
                // the answer was cut off: its last call may be incomplete, so the server runs none of its calls
                AnswerPart::Call { .. } if answer.finish != Finish::Done => {}
                AnswerPart::Call {
                    id,
                    name,
                    arguments,
                } => {
                    has_calls = true;
                    let call = self.call(calls, id, name, arguments);
                    calls += 1;
                    match request.is_for_client(&call.name) {
                        true => {
                            let index = self.take_index(&mut indexes);
                            self.for_client.push((index, call));
                        }
                        false => {
                            let index = own_indexes.next();
                            self.next_index =
                                self.next_index.max(index.map_or(0, |index| index + 1));
                            self.pending.push_back(PendingCall { index, ..call });
                        }
                    }
                }
            }
        }
        self.calls += calls;
        self.steps += 1;
        self.has_client_calls = !self.for_client.is_empty();
        self.ended = match answer.finish {
            Finish::MaxOutputTokens => Some(Status::Incomplete(Incomplete::MaxOutputTokens)),
            Finish::ContentFilter => Some(Status::Incomplete(Incomplete::ContentFilter)),
            Finish::Done if !has_calls || self.has_client_calls => Some(Status::Completed),
            Finish::Done => None,
        };
        self.release_client_calls(request);
    }

    fn take_index(&mut self, indexes: &mut impl Iterator<Item = u64>) -> u64 {
        let index = indexes.next().unwrap_or(self.next_index);
        self.next_index = self.next_index.max(index + 1);
        index
    }

    /// Derives an id for a call to which the upstream did not assign one. The id is short enough for all upstreams.
    fn call_id(&self, number: u32) -> String {
        let response = self.response.to_string();
        let fingerprint = Fingerprint::of(&[b"call", response.as_bytes(), &number.to_be_bytes()]);
        format!("call_{}", hex::encode(fingerprint.0))
    }

    /// Adds the client's calls to the output once the server has run all of its own calls.
    fn release_client_calls(&mut self, request: &ResponseRequest) {
        if self.pending.is_empty() {
            for (index, call) in std::mem::take(&mut self.for_client) {
                self.push(index, self.client_call(request, index, &call));
            }
        }
    }

    fn push(&mut self, index: u64, item: Json) {
        self.bytes += counted_bytes(&item);
        let position = self.indexes.partition_point(|earlier| *earlier < index);
        self.indexes.insert(position, index);
        self.output.insert(position, item);
    }
}

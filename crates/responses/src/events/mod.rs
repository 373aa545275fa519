//! Collects the events of a response for its driver to write.

pub(crate) mod broadcast;
mod open_item;

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

use crate::values::call::{PendingCall, call_item};
use crate::values::course::Course;
use crate::values::entry::ItemNumbers;
use crate::values::event::{ResponseEvent, TextKind};
use crate::values::items::{message, upstream_item};
use crate::values::model::{AnswerPart, Finish, ModelAnswer, Piece};
use crate::values::request::ResponseRequest;
use crate::values::stored::Stored as _;
use open_item::OpenItem;
use threadkeep_domain::{Json, ResponseId};
use threadkeep_store::{Responses, StoreError};

pub(crate) use open_item::complete_item_events;

/// Minimum interval between writes of event batches.
const BATCH_EVERY: Duration = Duration::from_millis(50);
/// Number of events to read per call to the store.
const PAGE: usize = 256;
/// Estimated overhead of an event, in bytes.
const EVENT_BYTES: u64 = 128;
/// Limit on the answer pieces that a response streams, as a multiple of the maximum size of its items.
///
/// The pieces can be larger than the items in total, because retries send pieces again. Beyond the limit, only complete
/// items are reported.
const PIECES_FACTOR: u64 = 4;

/// Queue for the events of a response. Stays empty if no client streams the response.
#[derive(Debug)]
pub(crate) struct EventQueue {
    is_streamed: bool,
    /// Number of the first event that has not been written yet.
    first: u64,
    waiting: Vec<ResponseEvent>,
    write_at: Instant,
    /// Items of the current answer that are in progress, by part.
    open: BTreeMap<usize, OpenItem>,
    /// Indexes of the complete items of the current answer, by part.
    ended: BTreeMap<usize, u64>,
    /// Calls that the server has not finished yet, by item index.
    server_calls: BTreeMap<u64, OpenItem>,
    /// Complete calls for the client, which are reported after the server has run its own calls.
    client_calls: Vec<(OpenItem, Json)>,
    calls: u32,
    next_index: u64,
    /// Remaining budget for reported pieces, in bytes.
    pieces_left: u64,
}

impl EventQueue {
    /// Creates an empty queue that continues from `course`, the progress of the response.
    pub(crate) fn of(request: &ResponseRequest, course: &Course, max_bytes: u64) -> Self {
        Self {
            is_streamed: request.is_streamed,
            first: course.next_event,
            waiting: Vec::new(),
            write_at: Instant::now(),
            open: BTreeMap::new(),
            ended: BTreeMap::new(),
            server_calls: BTreeMap::new(),
            client_calls: Vec::new(),
            calls: 0,
            next_index: course.next_index,
            pieces_left: max_bytes.saturating_mul(PIECES_FACTOR),
        }
    }

    /// Restores the queue of a response that has lost its driver. Reports unfinished items as incomplete, except calls
    /// that the server will still run.
    pub(crate) async fn resumed(
        responses: &dyn Responses,
        id: &ResponseId,
        request: &ResponseRequest,
        course: &Course,
        max_bytes: u64,
    ) -> Result<Self, StoreError> {
        let mut queue = Self::of(request, course, max_bytes);
        if !queue.is_streamed {
            return Ok(queue);
        }
        let mut open: BTreeMap<u64, OpenItem> = BTreeMap::new();
        let mut next = 0;
        while let Some(page) = responses.read_events(id, next, PAGE).await? {
            if page.events.is_empty() {
                break;
            }
            next += page.events.len() as u64;
            for bytes in &page.events {
                queue.spend(bytes.len() as u64);
                let event = ResponseEvent::read(bytes)?;
                if let Some(item) = OpenItem::of_event(&event) {
                    queue.next_index = queue.next_index.max(item.index + 1);
                    open.insert(item.index, item);
                } else if let ResponseEvent::ItemDone { index, .. } = event {
                    open.remove(&index);
                } else if let Some(index) = event.index()
                    && let Some(item) = open.get_mut(&index)
                {
                    item.apply(&event);
                }
            }
        }
        queue.first = queue.first.max(next);
        for (index, item) in open {
            if let Some(call) = course.held_call(request, index) {
                queue.client_calls.push((item, call));
            } else if course.is_to_run(index) {
                queue.server_calls.insert(index, item);
            } else {
                item.abandon(&mut queue.waiting);
            }
        }
        Ok(queue)
    }

    /// Queues [`ResponseEvent::Resumed`] ahead of all other waiting events.
    pub(crate) fn add_resumed(&mut self) {
        if self.is_streamed {
            self.waiting.insert(0, ResponseEvent::Resumed);
        }
    }

    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    fn spend(&mut self, bytes: u64) {
        self.pieces_left = self.pieces_left.saturating_sub(bytes);
    }

    pub(crate) fn is_streamed(&self) -> bool {
        self.is_streamed
    }

    /// Reports a piece of an answer. Ignores calls unless `may_call`.
    pub(crate) fn add_piece(
        &mut self,
        request: &ResponseRequest,
        course: &Course,
        may_call: bool,
        piece: Piece,
    ) {
        let before = self.waiting.len();
        match piece {
            Piece::Message {
                part,
                message: content,
            } => {
                let id = course.item_id(request, "msg_", self.next_index);
                self.begin(part, &message(&id, "in_progress", None, &content));
            }
            Piece::Item { part, item } => {
                let id = course.item_id(request, "rs_", self.next_index);
                self.begin(part, &upstream_item(&id, None, &item));
            }
            Piece::Text {
                part,
                kind,
                text_index: index,
                text,
            } => {
                if self.take_budget(&text)
                    && let Some(open) = self.open.get_mut(&part)
                {
                    open.add_text((kind, index), text, &mut self.waiting);
                }
            }
            Piece::Annotation {
                part,
                text_index: index,
                annotation,
            } => {
                if self.take_budget(annotation.as_str())
                    && let Some(open) = self.open.get_mut(&part)
                {
                    open.annotate((TextKind::Text, index), annotation, &mut self.waiting);
                }
            }
            Piece::ItemDone { part, item } => {
                if self.take_budget(item.as_str())
                    && let Some(open) = self.open.remove(&part)
                {
                    let id = course.item_id(request, "rs_", open.index);
                    let follows_call = self.open.range(..part).any(|(_, open)| open.is_call());
                    let step = follows_call.then_some(course.steps + 1);
                    self.ended.insert(part, open.index);
                    open.finish(&upstream_item(&id, step, &item), false, &mut self.waiting);
                }
            }
            Piece::Call { part, id, name } => {
                let call = course.call(self.calls, id, name, String::new());
                self.calls += 1;
                if may_call {
                    self.begin(part, &call_item(request, course, self.next_index, &call));
                }
            }
            Piece::Arguments { part, text } => {
                if self.take_budget(&text)
                    && let Some(open) = self.open.get_mut(&part)
                {
                    open.add_arguments(text, &mut self.waiting);
                }
            }
            Piece::Void => self.abandon_items(),
        }
        let new = self.waiting.len().saturating_sub(before) as u64;
        self.spend(new * EVENT_BYTES);
    }

    fn begin(&mut self, part: usize, item: &Json) {
        if self.take_budget(item.as_str()) {
            let begun = open_item::without_content(item);
            let open = OpenItem::begin(self.take_index(), begun, &mut self.waiting);
            self.open.insert(part, open);
        }
    }

    fn take_index(&mut self) -> u64 {
        self.next_index += 1;
        self.next_index - 1
    }

    fn take_budget(&mut self, text: &str) -> bool {
        let bytes = text.len() as u64;
        let fits = bytes <= self.pieces_left;
        self.spend(bytes);
        fits
    }

    /// Reports the end of an answer, and returns the indexes of the answer's items. Reports calls for the client only
    /// after the server's calls, because a response that ends early must not contain them.
    pub(crate) fn finish_answer(
        &mut self,
        request: &ResponseRequest,
        course: &Course,
        answer: &ModelAnswer,
        may_call: bool,
    ) -> ItemNumbers {
        let mut open = std::mem::take(&mut self.open);
        let mut ended = std::mem::take(&mut self.ended);
        let mut numbers = ItemNumbers::default();
        let has_server_calls = answer.parts.iter().any(
            |part| matches!(part, AnswerPart::Call { name, .. } if !request.is_for_client(name)),
        );
        let has_calls = may_call && answer.finish == Finish::Done;
        self.calls = 0;
        let mut step = None;
        for (part, content) in answer.parts.iter().enumerate() {
            let call = match content {
                AnswerPart::Call {
                    id,
                    name,
                    arguments,
                } => {
                    let (id, name) = (id.clone(), name.clone());
                    let call = course.call(self.calls, id, name, arguments.clone());
                    self.calls += 1;
                    Some(call)
                }
                _ => None,
            };
            if call.is_some() && may_call {
                step = Some(course.steps + 1);
            }
            if call.is_some() && !has_calls {
                continue;
            }
            let begun = open.remove(&part);
            let done = ended.remove(&part);
            let index = done.or(begun.as_ref().map(|open| open.index));
            let index = index.unwrap_or_else(|| self.take_index());
            let is_server_call = call
                .as_ref()
                .is_some_and(|call| !request.is_for_client(&call.name));
            match is_server_call {
                true => numbers.calls.push(index),
                false => numbers.items.push(index),
            }
            if !self.is_streamed || done.is_some() {
                continue;
            }
            let id = |prefix| course.item_id(request, prefix, index);
            let item = match (content, &call) {
                (AnswerPart::Message(content), _) => {
                    message(&id("msg_"), answer.status_of(part), step, content)
                }
                (AnswerPart::Item(item), _) => upstream_item(&id("rs_"), step, item),
                (_, Some(call)) => call_item(request, course, index, call),
                (AnswerPart::Call { .. }, None) => continue,
            };
            let mut begun = begun.unwrap_or_else(|| {
                OpenItem::begin(index, open_item::without_content(&item), &mut self.waiting)
            });
            match call {
                Some(call) if is_server_call => {
                    begun.end_arguments(&call.arguments, &mut self.waiting);
                    self.server_calls.insert(index, begun);
                }
                Some(_) if has_server_calls => self.client_calls.push((begun, item)),
                _ => begun.finish(&item, answer.is_cut(part), &mut self.waiting),
            }
        }
        self.calls = 0;
        for (_, item) in open {
            item.abandon(&mut self.waiting);
        }
        numbers
    }

    /// Reports that the server is running a call. Returns the index of the call's item. Assigns an index if the call
    /// does not have one, because an older version wrote the journal.
    pub(crate) fn begin_call(
        &mut self,
        request: &ResponseRequest,
        course: &Course,
        call: &PendingCall,
    ) -> u64 {
        let index = call.index.unwrap_or_else(|| self.take_index());
        if self.is_streamed {
            let open = self.server_calls.entry(index).or_insert_with(|| {
                let begun = open_item::without_content(&call_item(request, course, index, call));
                let mut open = OpenItem::begin(index, begun, &mut self.waiting);
                open.end_arguments(&call.arguments, &mut self.waiting);
                open
            });
            open.run(&mut self.waiting);
        }
        index
    }

    /// Reports the end of a call. After the last call in an answer, also reports the calls for the client. If the
    /// journal entry cannot be written, pass the returned checkpoint to [`Self::roll_back_to`].
    pub(crate) fn finish_call(&mut self, index: u64, item: &Json, is_last: bool) -> usize {
        let checkpoint = self.waiting.len();
        if let Some(open) = self.server_calls.get(&index) {
            open.clone().finish(item, false, &mut self.waiting);
        }
        if is_last {
            for (open, item) in &self.client_calls {
                open.clone().finish(item, false, &mut self.waiting);
            }
        }
        checkpoint
    }

    /// Removes a call whose journal entry is written.
    pub(crate) fn end_call(&mut self, index: u64, is_last: bool) {
        self.server_calls.remove(&index);
        if is_last {
            self.client_calls.clear();
        }
    }

    /// Removes the waiting events that were added since `checkpoint`.
    pub(crate) fn roll_back_to(&mut self, checkpoint: usize) {
        self.waiting.truncate(checkpoint);
    }

    pub(crate) fn abandon_items(&mut self) {
        self.calls = 0;
        self.ended.clear();
        let open = std::mem::take(&mut self.open).into_values();
        let server_calls = std::mem::take(&mut self.server_calls).into_values();
        let client_calls = std::mem::take(&mut self.client_calls).into_iter();
        for item in open
            .chain(server_calls)
            .chain(client_calls.map(|(item, _)| item))
        {
            item.abandon(&mut self.waiting);
        }
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) async fn wait_until_due(&self) {
        match self.has_waiting() {
            true => sleep_until(self.write_at).await,
            false => pending().await,
        }
    }

    /// Returns the number of the first waiting event, and all waiting events.
    pub(crate) fn waiting(&self) -> (u64, Vec<Bytes>) {
        let events = self.waiting.iter().map(ResponseEvent::to_bytes).collect();
        (self.first, events)
    }

    pub(crate) fn note_written(&mut self) {
        self.first += self.waiting.len() as u64;
        self.waiting.clear();
        self.write_at = Instant::now() + BATCH_EVERY;
    }
}

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
use crate::values::items::{foreign, message};
use crate::values::model::{AnswerPart, Finish, ModelAnswer, Piece};
use crate::values::request::ResponseRequest;
use crate::values::stored::Stored as _;
use open_item::OpenItem;
use threadkeep_domain::{Json, ResponseId};
use threadkeep_store::{Responses, StoreError};

pub(crate) use open_item::whole;

/// Minimum interval between writes of event batches.
const BATCH_EVERY: Duration = Duration::from_millis(50);
/// Number of events to read per call to the store.
const PAGE: usize = 256;
/// Estimated overhead of an event, in bytes.
const EVENT_BYTES: u64 = 128;
/// Maximum total size of a response's pieces, as a multiple of the maximum size of its items. The pieces can be larger
/// than the items, because an upstream may abandon an answer and start again. Beyond the limit, only complete items are
/// reported.
const PIECES_FACTOR: u64 = 4;

/// Queue for the events of a response. Stays empty if no client streams the response.
#[derive(Debug)]
pub(crate) struct EventQueue {
    is_on: bool,
    /// Number of the first event that has not been written yet.
    first: u64,
    waiting: Vec<ResponseEvent>,
    write_at: Instant,
    /// Items of the current answer that are in progress, by part.
    open: BTreeMap<usize, OpenItem>,
    /// Indexes of the complete items of the current answer, by part.
    ended: BTreeMap<usize, u64>,
    /// Calls that the server has not finished yet, by item index.
    own: BTreeMap<u64, OpenItem>,
    /// Complete calls for the client, to be reported after the server's calls.
    held: Vec<(OpenItem, Json)>,
    calls: u32,
    next_index: u64,
    /// Remaining budget for reported pieces, in bytes.
    pieces_left: u64,
}

impl EventQueue {
    /// Creates the queue for a response that has reported nothing since it reached the state in `course`.
    pub(crate) fn of(request: &ResponseRequest, course: &Course, max_bytes: u64) -> Self {
        Self {
            is_on: request.is_streamed,
            first: course.next_event,
            waiting: Vec::new(),
            write_at: Instant::now(),
            open: BTreeMap::new(),
            ended: BTreeMap::new(),
            own: BTreeMap::new(),
            held: Vec::new(),
            calls: 0,
            next_index: course.next_index,
            pieces_left: max_bytes.saturating_mul(PIECES_FACTOR),
        }
    }

    /// Restores the queue of a response that has lost its driver. Reports unfinished items, except pending calls, as
    /// incomplete.
    pub(crate) async fn resumed(
        responses: &dyn Responses,
        id: &ResponseId,
        request: &ResponseRequest,
        course: &Course,
        max_bytes: u64,
    ) -> Result<Self, StoreError> {
        let mut telling = Self::of(request, course, max_bytes);
        if !telling.is_on {
            return Ok(telling);
        }
        let mut open: BTreeMap<u64, OpenItem> = BTreeMap::new();
        let mut next = 0;
        while let Some(told) = responses.told(id, next, PAGE).await? {
            if told.events.is_empty() {
                break;
            }
            next += told.events.len() as u64;
            for bytes in &told.events {
                telling.charge(bytes.len() as u64);
                let event = ResponseEvent::read(bytes)?;
                if let Some(item) = OpenItem::of_event(&event) {
                    telling.next_index = telling.next_index.max(item.index + 1);
                    open.insert(item.index, item);
                } else if let ResponseEvent::ItemDone { index, .. } = event {
                    open.remove(&index);
                } else if let Some(index) = event.index()
                    && let Some(item) = open.get_mut(&index)
                {
                    item.follow(&event);
                }
            }
        }
        telling.first = telling.first.max(next);
        for (index, item) in open {
            if let Some(call) = course.held_call(request, index) {
                telling.held.push((item, call));
            } else if course.is_to_run(index) {
                telling.own.insert(index, item);
            } else {
                item.break_off(&mut telling.waiting);
            }
        }
        Ok(telling)
    }

    /// Queues [`ResponseEvent::Resumed`] ahead of all other waiting events.
    pub(crate) fn go_on(&mut self) {
        if self.is_on {
            self.waiting.insert(0, ResponseEvent::Resumed);
        }
    }

    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    fn charge(&mut self, bytes: u64) {
        self.pieces_left = self.pieces_left.saturating_sub(bytes);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Reports a piece of an answer. Ignores calls unless `may_call`.
    pub(crate) fn piece(
        &mut self,
        request: &ResponseRequest,
        course: &Course,
        may_call: bool,
        piece: Piece,
    ) {
        let before = self.waiting.len();
        match piece {
            Piece::Message { part, message: new } => {
                let id = course.item_id(request, "msg_", self.next_index);
                self.begin(part, &message(&id, "in_progress", None, &new));
            }
            Piece::Item { part, item } => {
                let id = course.item_id(request, "rs_", self.next_index);
                self.begin(part, &foreign(&id, None, &item));
            }
            Piece::Text {
                part,
                kind,
                place,
                text,
            } => {
                if self.has_room_for(&text)
                    && let Some(open) = self.open.get_mut(&part)
                {
                    open.add_text((kind, place), text, &mut self.waiting);
                }
            }
            Piece::Annotation {
                part,
                place,
                annotation,
            } => {
                if self.has_room_for(annotation.as_str())
                    && let Some(open) = self.open.get_mut(&part)
                {
                    open.annotate((TextKind::Text, place), annotation, &mut self.waiting);
                }
            }
            Piece::ItemDone { part, item } => {
                if self.has_room_for(item.as_str())
                    && let Some(open) = self.open.remove(&part)
                {
                    let id = course.item_id(request, "rs_", open.index);
                    let follows_call = self.open.range(..part).any(|(_, open)| open.is_call());
                    let step = follows_call.then_some(course.steps + 1);
                    self.ended.insert(part, open.index);
                    open.finish(&foreign(&id, step, &item), false, &mut self.waiting);
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
                if self.has_room_for(&text)
                    && let Some(open) = self.open.get_mut(&part)
                {
                    open.add_arguments(text, &mut self.waiting);
                }
            }
            Piece::Void => self.break_off(),
        }
        let new = self.waiting.len().saturating_sub(before) as u64;
        self.charge(new * EVENT_BYTES);
    }

    fn begin(&mut self, part: usize, item: &Json) {
        if self.has_room_for(item.as_str()) {
            let begun = open_item::begun(item);
            let open = OpenItem::begin(self.take_index(), begun, &mut self.waiting);
            self.open.insert(part, open);
        }
    }

    fn take_index(&mut self) -> u64 {
        self.next_index += 1;
        self.next_index - 1
    }

    fn has_room_for(&mut self, text: &str) -> bool {
        let bytes = text.len() as u64;
        let has_room = bytes <= self.pieces_left;
        self.charge(bytes);
        has_room
    }

    /// Reports the end of an answer. Returns the indexes of its items. Calls for the client are reported only after the
    /// server's calls are done, because a response that ends before then must not contain them.
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
        let has_own = answer.parts.iter().any(
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
            let is_own = call
                .as_ref()
                .is_some_and(|call| !request.is_for_client(&call.name));
            match is_own {
                true => numbers.calls.push(index),
                false => numbers.items.push(index),
            }
            if !self.is_on || done.is_some() {
                continue;
            }
            let id = |prefix| course.item_id(request, prefix, index);
            let item = match (content, &call) {
                (AnswerPart::Message(content), _) => {
                    message(&id("msg_"), answer.status_of(part), step, content)
                }
                (AnswerPart::Item(item), _) => foreign(&id("rs_"), step, item),
                (_, Some(call)) => call_item(request, course, index, call),
                (AnswerPart::Call { .. }, None) => continue,
            };
            let mut begun = begun.unwrap_or_else(|| {
                OpenItem::begin(index, open_item::begun(&item), &mut self.waiting)
            });
            match call {
                Some(call) if is_own => {
                    begun.end_arguments(&call.arguments, &mut self.waiting);
                    self.own.insert(index, begun);
                }
                Some(_) if has_own => self.held.push((begun, item)),
                _ => begun.finish(&item, answer.is_cut(part), &mut self.waiting),
            }
        }
        self.calls = 0;
        for (_, item) in open {
            item.break_off(&mut self.waiting);
        }
        numbers
    }

    /// Reports that the server is running a call. Returns the index of the call's item. If an older version wrote the
    /// journal, the call may have no index, so one is assigned.
    pub(crate) fn begin_call(
        &mut self,
        request: &ResponseRequest,
        course: &Course,
        call: &PendingCall,
    ) -> u64 {
        let index = call.index.unwrap_or_else(|| self.take_index());
        if self.is_on {
            let open = self.own.entry(index).or_insert_with(|| {
                let begun = open_item::begun(&call_item(request, course, index, call));
                let mut open = OpenItem::begin(index, begun, &mut self.waiting);
                open.end_arguments(&call.arguments, &mut self.waiting);
                open
            });
            open.run(&mut self.waiting);
        }
        index
    }

    /// Reports the end of a call. After the last call of an answer, also reports the calls for the client. If the
    /// journal entry cannot be written, pass the returned mark to [`Self::take_back`].
    pub(crate) fn finish_call(&mut self, index: u64, item: &Json, is_last: bool) -> usize {
        let mark = self.waiting.len();
        if let Some(open) = self.own.get(&index) {
            open.clone().finish(item, false, &mut self.waiting);
        }
        if is_last {
            for (open, item) in &self.held {
                open.clone().finish(item, false, &mut self.waiting);
            }
        }
        mark
    }

    /// Removes a call whose journal entry is written.
    pub(crate) fn end_call(&mut self, index: u64, is_last: bool) {
        self.own.remove(&index);
        if is_last {
            self.held.clear();
        }
    }

    /// Removes the waiting events that were added since `mark`.
    pub(crate) fn take_back(&mut self, mark: usize) {
        self.waiting.truncate(mark);
    }

    pub(crate) fn break_off(&mut self) {
        self.calls = 0;
        self.ended.clear();
        let open = std::mem::take(&mut self.open).into_values();
        let own = std::mem::take(&mut self.own).into_values();
        let held = std::mem::take(&mut self.held).into_iter();
        for item in open.chain(own).chain(held.map(|(item, _)| item)) {
            item.break_off(&mut self.waiting);
        }
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) async fn due(&self) {
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

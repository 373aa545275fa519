//! The events of a turn, as its driver tells them.

mod open_item;

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

use super::course::Course;
use super::event::{TextKind, TurnEvent};
use super::items::{foreign, function_call, message};
use super::model::{AnswerPart, Finish, ModelAnswer, Piece};
use super::request::TurnRequest;
use super::turns::Shared;
use crate::domain::{Json, ResponseId};
use crate::store::StoreError;
use open_item::OpenItem;

pub(super) use open_item::whole;

/// How long events wait for others that are written with them.
const BATCH_EVERY: Duration = Duration::from_millis(50);
/// Events that are read at once.
const PAGE: usize = 256;
/// Bytes of an event beyond its text.
const EVENT_BYTES: u64 = 128;
/// The pieces that are reported one by one have at most that many times the bytes that the items of a turn may have, also
/// if an upstream breaks off repeatedly. Later items are reported when they are complete.
const PIECES_FACTOR: u64 = 4;

/// The events of a turn that are written, and those that wait to be. A turn that no client streams has none.
#[derive(Debug)]
pub(super) struct Telling {
    is_on: bool,
    /// The number of the first event that waits.
    first: u64,
    waiting: Vec<TurnEvent>,
    write_at: Instant,
    /// Items of the current answer that have begun, by the number of their part.
    open: BTreeMap<usize, OpenItem>,
    /// An item of a call that this server runs.
    call: Option<OpenItem>,
    /// Calls for the client that are complete, but come after those of this server.
    held: Vec<(OpenItem, Json)>,
    /// Calls of the current answer that have begun.
    calls: u32,
    /// The number of the next item.
    next_index: u64,
    /// Bytes of pieces that may yet be reported.
    pieces_left: u64,
}

impl Telling {
    /// That of a turn that goes on from there, and has reported nothing yet.
    pub(super) fn of(request: &TurnRequest, course: &Course, max_bytes: u64) -> Self {
        Self {
            is_on: request.is_streamed,
            first: course.next_event,
            waiting: Vec::new(),
            write_at: Instant::now(),
            open: BTreeMap::new(),
            call: None,
            held: Vec::new(),
            calls: 0,
            next_index: course.next_index,
            pieces_left: max_bytes.saturating_mul(PIECES_FACTOR),
        }
    }

    /// That of a turn whose driver is gone. Items that this has not completed are broken off.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) async fn resumed(
        shared: &Shared,
        id: &ResponseId,
        request: &TurnRequest,
        course: &Course,
    ) -> Result<Self, StoreError> {
        let mut telling = Self::of(request, course, shared.limits.max_bytes);
        if !telling.is_on {
            return Ok(telling);
        }
        let mut open: BTreeMap<u64, OpenItem> = BTreeMap::new();
        let mut next = 0;
        while let Some(told) = shared.responses.told(id, next, PAGE).await? {
            if told.events.is_empty() {
                break;
            }
            next += told.events.len() as u64;
            for bytes in &told.events {
                telling.charge(bytes.len() as u64);
                let event = TurnEvent::read(bytes)?;
                if let Some(item) = OpenItem::of_event(&event) {
                    telling.next_index = telling.next_index.max(item.index + 1);
                    open.insert(item.index, item);
                } else if let TurnEvent::ItemDone { index, .. } = event {
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
            match course.held_call(request, index) {
                Some(call) => telling.held.push((item, call)),
                None => item.break_off(&mut telling.waiting),
            }
        }
        Ok(telling)
    }

    /// A driver goes on with the turn, which comes before all else that it reports.
    pub(super) fn go_on(&mut self) {
        if self.is_on {
            self.waiting.insert(0, TurnEvent::Resumed);
        }
    }

    /// The number of the first event that is not written.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    fn charge(&mut self, bytes: u64) {
        self.pieces_left = self.pieces_left.saturating_sub(bytes);
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// A piece of an answer. A model that may not call makes no calls.
    pub(super) fn piece(
        &mut self,
        request: &TurnRequest,
        course: &Course,
        may_call: bool,
        piece: Piece,
    ) {
        let before = self.waiting.len();
        match piece {
            Piece::Text { part, text } => self.text(request, course, part, TextKind::Text, text),
            Piece::Refusal { part, text } => {
                self.text(request, course, part, TextKind::Refusal, text);
            }
            Piece::Call { part, id, name } => {
                let call = course.call(self.calls, id, name, String::new());
                self.calls += 1;
                if may_call && request.is_for_client(&call.name) {
                    let id = course.item_id(request, "fc_", self.next_index);
                    self.begin(part, open_item::begun(&function_call(&id, &call)));
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

    fn text(
        &mut self,
        request: &TurnRequest,
        course: &Course,
        part: usize,
        kind: TextKind,
        text: String,
    ) {
        if !self.has_room_for(&text) {
            return;
        }
        if !self.open.contains_key(&part) {
            let id = course.item_id(request, "msg_", self.next_index);
            let item = message(&id, &Json::from_compact("[]"));
            self.begin(part, open_item::begun(&item));
        }
        if let Some(open) = self.open.get_mut(&part) {
            open.add_text(kind, text, &mut self.waiting);
        }
    }

    fn begin(&mut self, part: usize, item: Json) {
        let open = OpenItem::begin(self.take_index(), item, &mut self.waiting);
        self.open.insert(part, open);
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

    /// The answer is complete. Returns the numbers of its items. Calls for the client are reported when this server has run its
    /// own: whatever ends the turn before that leaves none.
    pub(super) fn finish_answer(
        &mut self,
        request: &TurnRequest,
        course: &Course,
        answer: &ModelAnswer,
        may_call: bool,
    ) -> Vec<u64> {
        let mut open = std::mem::take(&mut self.open);
        let mut indexes = Vec::new();
        let has_own = answer.parts.iter().any(
            |part| matches!(part, AnswerPart::Call { name, .. } if !request.is_for_client(name)),
        );
        self.calls = 0;
        for (part, content) in answer.parts.iter().enumerate() {
            let is_item = match content {
                AnswerPart::Call { name, .. } => {
                    self.calls += 1;
                    may_call && request.is_for_client(name) && answer.finish == Finish::Done
                }
                _ => true,
            };
            if !is_item {
                continue;
            }
            let begun = open.remove(&part);
            let index = match &begun {
                Some(open) => open.index,
                None => self.take_index(),
            };
            indexes.push(index);
            if !self.is_on {
                continue;
            }
            let id = |prefix| course.item_id(request, prefix, index);
            let item = match content {
                AnswerPart::Message(content) => message(&id("msg_"), content),
                AnswerPart::Item(item) => foreign(&id("rs_"), item),
                AnswerPart::Call {
                    id: given,
                    name,
                    arguments,
                } => {
                    let (given, name) = (given.clone(), name.clone());
                    let call = course.call(self.calls - 1, given, name, arguments.clone());
                    function_call(&id("fc_"), &call)
                }
            };
            let begun = begun.unwrap_or_else(|| {
                OpenItem::begin(index, open_item::begun(&item), &mut self.waiting)
            });
            match content {
                AnswerPart::Call { .. } if has_own => self.held.push((begun, item)),
                _ => begun.finish(&item, &mut self.waiting),
            }
        }
        self.calls = 0;
        for (_, item) in open {
            item.break_off(&mut self.waiting);
        }
        indexes
    }

    /// A call that this server runs begins. Returns the number of its item.
    pub(super) fn begin_call(&mut self, item: impl FnOnce(u64) -> Json) -> u64 {
        let index = self.take_index();
        if self.is_on {
            let begun = open_item::begun(&item(index));
            self.call = Some(OpenItem::begin(index, begun, &mut self.waiting));
        }
        index
    }

    /// That call is complete, unless its entry cannot be written; and with the last one of an answer, those for the client.
    /// Returns the mark to take the events back by.
    pub(super) fn finish_call(&mut self, item: &Json, is_last: bool) -> usize {
        let mark = self.waiting.len();
        if let Some(open) = &self.call {
            open.clone().finish(item, &mut self.waiting);
        }
        if is_last {
            for (open, item) in &self.held {
                open.clone().finish(item, &mut self.waiting);
            }
        }
        mark
    }

    /// The entry of that call is written.
    pub(super) fn end_call(&mut self, is_last: bool) {
        self.call = None;
        if is_last {
            self.held.clear();
        }
    }

    /// Takes back the events since that mark.
    pub(super) fn take_back(&mut self, mark: usize) {
        self.waiting.truncate(mark);
    }

    /// Breaks off all items that are not complete.
    pub(super) fn break_off(&mut self) {
        self.calls = 0;
        let open = std::mem::take(&mut self.open).into_values();
        let held = std::mem::take(&mut self.held).into_iter();
        let held = held.map(|(item, _)| item);
        for item in open.chain(held).chain(self.call.take()) {
            item.break_off(&mut self.waiting);
        }
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Waits until there are events to write.
    pub(super) async fn due(&self) {
        match self.has_waiting() {
            true => sleep_until(self.write_at).await,
            false => pending().await,
        }
    }

    /// The events that wait, with the number of the first.
    pub(super) fn waiting(&self) -> (u64, Vec<Bytes>) {
        let events = self.waiting.iter().map(TurnEvent::to_bytes).collect();
        (self.first, events)
    }

    /// The events that waited are written.
    pub(super) fn note_written(&mut self) {
        self.first += self.waiting.len() as u64;
        self.waiting.clear();
        self.write_at = Instant::now() + BATCH_EVERY;
    }
}

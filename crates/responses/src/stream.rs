use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::driver::closing::{Closing, EVENT_RETENTION};
use crate::events::broadcast::{Broadcast, Progress, ResponseResult};
use crate::events::complete_item_events;
use crate::shared::Shared;
use crate::values::course::Course;
use crate::values::error::ResponseError;
use crate::values::event::ResponseEvent;
use crate::values::request::{Protocol, ResponseRequest};
use crate::values::response::EndedResponse;
use crate::values::stored::Stored as _;
use threadkeep_domain::{Failure, Json, Outcome, ResponseId, Usage};
use threadkeep_store::{ResponseView, StoreError};

/// Initial and maximum interval between polls for events of a response that a different process runs. The interval
/// doubles each time no events have arrived.
const POLL_EVERY: Duration = Duration::from_millis(100);
const POLL_EVERY_MAX: Duration = Duration::from_secs(1);
/// Interval at which to check whether a response that does not produce events has failed.
const CHECK_EVERY: Duration = Duration::from_secs(5);
/// Number of events to read per store call.
const PAGE: usize = 16;
/// Sequence numbers of the first two items in a stream, and of the first stored event.
const CREATED: u64 = 0;
const RUNNING: u64 = 1;
const FIRST_EVENT: u64 = 2;

/// Streams the events of a response. Events have consecutive numbers starting at 0, which are the same for all readers.
#[derive(Debug)]
pub struct ResponseStream {
    shared: Arc<Shared>,
    id: ResponseId,
    request: Arc<ResponseRequest>,
    /// True if the response existed before the request.
    is_replay: bool,
    /// Number of the next item.
    next: u64,
    ready: VecDeque<ResponseEvent>,
    source: Source,
    /// Time of the last event or of the last check of the response's state, whichever is later.
    checked_at: Instant,
    /// True if the response had no driver at the last check.
    has_no_driver: bool,
    pause: Duration,
}

#[derive(Debug)]
enum Source {
    /// A driver in this process.
    Local(Arc<Broadcast>, watch::Receiver<Progress>),
    /// The store, to which a different process writes.
    Store,
    /// All events have been streamed, and only the end remains.
    End(ResponseResult),
    /// The stream has ended.
    Nothing,
}

#[derive(Debug)]
pub enum StreamItem {
    /// The response exists.
    Created,
    /// The response is running.
    Running,
    Event(ResponseEvent),
    Ended(EndedResponse),
    /// The response has stopped. Repeating the request may resume it.
    Failed(Arc<ResponseError>, SoFar),
}

/// The result of a stopped response so far.
#[derive(Debug, Default)]
pub struct SoFar {
    /// Complete output items.
    pub output: Vec<Json>,
    pub usage: Usage,
}

impl ResponseStream {
    /// Streams a response after [`Shared::drive`] has started or joined it.
    pub(crate) async fn of_new(
        shared: &Arc<Shared>,
        id: ResponseId,
        broadcast: Arc<Broadcast>,
        is_joined: bool,
    ) -> Result<Self, Arc<ResponseError>> {
        let mut progress = broadcast.subscribe();
        let begun = progress
            .wait_for(|progress| !matches!(progress, Progress::Beginning))
            .await
            .map(|begun| begun.clone())
            .map_err(|_| ResponseError::Stopping)?;
        let (request, is_replay) = match begun {
            Progress::Local(request) => (request, is_joined),
            Progress::Done(Err(error)) => (broadcast.begun().ok_or(error)?, is_joined),
            Progress::Done(Ok(ended)) => (ended.request, is_joined || ended.is_replay),
            Progress::Remote | Progress::Beginning => {
                let view = shared.responses.get_response(&id).await;
                let view = view.map_err(ResponseError::from)?;
                let view = view.ok_or(ResponseError::NoResponse)?;
                let request = ResponseRequest::read(&view.journal.request);
                let request = request.map_err(ResponseError::from)?;
                (Arc::new(request.without_input()), true)
            }
        };
        let source = Source::Local(broadcast, progress);
        Ok(Self {
            is_replay,
            ..Self::from(shared, id, request, source)
        })
    }

    /// Streams a stored response, starting after event `after`, or at the beginning if `after` is `None`.
    pub(crate) async fn of_known(
        shared: &Arc<Shared>,
        protocol: Protocol,
        id: &ResponseId,
        after: Option<u64>,
    ) -> Result<Self, ResponseError> {
        let (view, request) = shared.stored_response(protocol, id).await?;
        let request = Arc::new(request.without_input());
        let ended = view.answer.as_ref().map(|answer| Outcome::read(answer));
        let ended = ended.transpose()?;
        if let Some(outcome) = &ended {
            if !request.is_kept {
                return Err(ResponseError::NoResponse);
            }
            if are_expired(shared, outcome) {
                return Err(ResponseError::StreamExpired);
            }
        }
        let end = FIRST_EVENT + events_of(&request, &view, ended.as_ref());
        let next = after.map_or(0, |after| after.saturating_add(1));
        if next > end + u64::from(ended.is_some()) {
            return Err(ResponseError::NoSuchEvent);
        }
        let source = match shared.running.find(id) {
            _ if ended.is_some() && next > end => Source::Nothing,
            Some(broadcast) => {
                let progress = broadcast.subscribe();
                Source::Local(broadcast, progress)
            }
            None => Source::Store,
        };
        Ok(Self {
            next,
            ..Self::from(shared, *id, request, source)
        })
    }

    fn from(
        shared: &Arc<Shared>,
        id: ResponseId,
        request: Arc<ResponseRequest>,
        source: Source,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            id,
            request,
            is_replay: false,
            next: CREATED,
            ready: VecDeque::new(),
            source,
            checked_at: Instant::now(),
            has_no_driver: false,
            pause: POLL_EVERY,
        }
    }

    /// Switches to streaming complete items if the response has ended and its events have expired.
    pub(crate) fn or_complete_items(self) -> Self {
        match self.ended() {
            Some(ended) if are_expired(&self.shared, &ended.outcome) => Self {
                ready: output_events(&ended.outcome).into(),
                source: Source::End(Ok(ended)),
                ..self
            },
            _ => self,
        }
    }

    #[must_use]
    pub fn id(&self) -> &ResponseId {
        &self.id
    }

    /// Returns the request, possibly without its input.
    #[must_use]
    pub fn request(&self) -> &ResponseRequest {
        &self.request
    }

    #[must_use]
    pub fn is_replay(&self) -> bool {
        self.is_replay
    }

    /// Returns the end if the response has ended.
    #[must_use]
    pub fn ended(&self) -> Option<EndedResponse> {
        match &self.source {
            Source::Local(_, progress) => match &*progress.borrow() {
                Progress::Done(Ok(ended)) => Some(ended.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.next < FIRST_EVENT || !self.ready.is_empty()
    }

    /// Returns the next item with its number, or `None` after the end. Cancel-safe.
    ///
    /// # Errors
    /// [`ResponseError::Stopping`] if this process can no longer stream the response. A different process or a repeated
    /// request may resume the response. [`ResponseError::Service`] if the store fails. After an error, a reader can
    /// resume after the last number that it received.
    pub async fn next(&mut self) -> Result<Option<(u64, StreamItem)>, ResponseError> {
        let number = self.next;
        if matches!(self.source, Source::Nothing) {
            return Ok(None);
        }
        let item = match number {
            CREATED => StreamItem::Created,
            RUNNING => StreamItem::Running,
            _ => match self.event().await {
                Ok(Some(event)) => StreamItem::Event(event),
                Ok(None) => self.end().await?,
                // the response was deleted, or its events expired before the reader received them
                Err(error @ (ResponseError::NoResponse | ResponseError::StreamExpired)) => {
                    self.source = Source::Nothing;
                    StreamItem::Failed(Arc::new(error), SoFar::default())
                }
                Err(error) => return Err(error),
            },
        };
        self.next = number + 1;
        Ok(Some((number, item)))
    }

    async fn end(&mut self) -> Result<StreamItem, ResponseError> {
        let so_far = match &self.source {
            Source::End(Err(error)) if matches!(**error, ResponseError::Failed(_)) => {
                self.so_far().await?
            }
            _ => SoFar::default(),
        };
        match std::mem::replace(&mut self.source, Source::Nothing) {
            Source::End(Ok(ended)) => Ok(StreamItem::Ended(ended)),
            Source::End(Err(error)) if matches!(*error, ResponseError::Stopping) => {
                Err(ResponseError::Stopping)
            }
            Source::End(Err(error)) => Ok(StreamItem::Failed(error, so_far)),
            _ => Err(ResponseError::Stopping),
        }
    }

    async fn so_far(&self) -> Result<SoFar, ResponseError> {
        let Some(view) = self.shared.responses.get_response(&self.id).await? else {
            return Ok(SoFar::default());
        };
        let course = Course::replay(self.id, &self.request, &view.journal)?;
        Ok(SoFar {
            output: course.output,
            usage: course.usage,
        })
    }

    /// Returns the next event, or `None` at the end.
    async fn event(&mut self) -> Result<Option<ResponseEvent>, ResponseError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let position = self.next - FIRST_EVENT;
            match &mut self.source {
                Source::End(_) | Source::Nothing => return Ok(None),
                Source::Local(broadcast, progress) => {
                    // must read the progress before the events: if the progress shows the end, the events are then
                    // complete
                    let current = progress.borrow_and_update().clone();
                    let events = match self.request.is_streamed {
                        true => broadcast.events_from(position),
                        false => Some(Vec::new()),
                    };
                    match (events, current) {
                        (Some(events), _) if !events.is_empty() => {
                            self.ready = read(&events)?;
                        }
                        (_, Progress::Done(result)) => self.drain(position, result).await?,
                        (_, Progress::Remote) => self.source = Source::Store,
                        (None, _) => self.ready = self.read_store(position).await?.0,
                        (Some(_), _) => {
                            tokio::select! {
                                changed = progress.changed() => {
                                    changed.map_err(|_| ResponseError::Stopping)?;
                                }
                                () = self.shared.running.stop.cancelled() => {
                                    return Err(ResponseError::Stopping);
                                }
                            }
                        }
                    }
                }
                Source::Store => {
                    let (events, has_ended) = self.read_store(position).await?;
                    self.ready = events;
                    if !self.ready.is_empty() {
                        (self.checked_at, self.pause) = (Instant::now(), POLL_EVERY);
                        continue;
                    }
                    if has_ended {
                        let ended = self.shared.close(&self.id, Closing::Abandoned).await?;
                        let ended = ended.ok_or(ResponseError::NoResponse)?;
                        self.drain(position, Ok(ended)).await?;
                        continue;
                    }
                    self.pause_and_check().await?;
                }
            }
        }
    }

    /// Reads the remaining events of a response after its driver has stopped. Switches to reading from the store if
    /// another driver has resumed the response.
    async fn drain(&mut self, position: u64, result: ResponseResult) -> Result<(), ResponseError> {
        self.ready = match &result {
            Ok(ended) if !self.request.is_streamed => {
                let events = output_events(&ended.outcome);
                let skipped = usize::try_from(position).unwrap_or(usize::MAX);
                events.into_iter().skip(skipped).collect()
            }
            Ok(_) => match self.read_store(position).await {
                // the end contains everything that the events reported
                Err(ResponseError::StreamExpired) => VecDeque::new(),
                events => events?.0,
            },
            Err(_) => self.read_store(position).await?.0,
        };
        if result.is_err() && self.ready.contains(&ResponseEvent::Resumed) {
            self.source = Source::Store;
            return Ok(());
        }
        // ends only after all events have been read, because each call reads a limited number of events from the store
        if self.ready.is_empty() || !self.request.is_streamed {
            self.source = Source::End(result);
        }
        Ok(())
    }

    /// Pauses before the next read from the store. Checks the state of the response if the last check is old enough.
    async fn pause_and_check(&mut self) -> Result<(), ResponseError> {
        if self.checked_at.elapsed() >= CHECK_EVERY {
            self.checked_at = Instant::now();
            let view = self.shared.responses.get_response(&self.id).await?;
            let view = view.ok_or(ResponseError::NoResponse)?;
            if let Some(failure) = failure_of(&self.id, &self.request, &view)? {
                // includes the events since the last read
                let failed = Err(Arc::new(ResponseError::Failed(failure)));
                return self.drain(self.next - FIRST_EVENT, failed).await;
            }
            // only a repeated request would resume it
            let has_no_driver =
                view.driven.is_none() && view.answer.is_none() && !self.request.is_background;
            if has_no_driver && self.has_no_driver {
                return Err(ResponseError::Stopping);
            }
            self.has_no_driver = has_no_driver;
        }
        let pause = self.pause;
        self.pause = (2 * pause).min(POLL_EVERY_MAX);
        tokio::select! {
            () = sleep(pause) => Ok(()),
            () = self.shared.running.closing.cancelled() => Err(ResponseError::Stopping),
        }
    }

    /// Reads events from the store, starting at `position`. Also returns whether the response has ended.
    async fn read_store(
        &self,
        position: u64,
    ) -> Result<(VecDeque<ResponseEvent>, bool), ResponseError> {
        let page = self
            .shared
            .responses
            .read_events(&self.id, position, PAGE)
            .await?;
        let page = page.ok_or(ResponseError::StreamExpired)?;
        let events = match self.request.is_streamed {
            true => read(&page.events)?,
            false => VecDeque::new(),
        };
        Ok((events, page.has_ended))
    }
}

fn read(events: &[bytes::Bytes]) -> Result<VecDeque<ResponseEvent>, StoreError> {
    events
        .iter()
        .map(|event| ResponseEvent::read(event))
        .collect()
}

/// Returns the failure that stopped the last driver. Returns `None` if the response has been resumed or has ended.
fn failure_of(
    id: &ResponseId,
    request: &ResponseRequest,
    view: &ResponseView,
) -> Result<Option<Failure>, StoreError> {
    if view.driven.is_some() || view.answer.is_some() {
        return Ok(None);
    }
    Ok(Course::replay(*id, request, &view.journal)?.failure)
}

/// Converts the output to events. Used for a response if its events were not written or have expired.
fn output_events(outcome: &Outcome) -> Vec<ResponseEvent> {
    let mut events = Vec::new();
    for (index, item) in (0..).zip(&outcome.output) {
        complete_item_events(index, item, &mut events);
    }
    events
}

/// Returns the number of events that a response has so far.
fn events_of(request: &ResponseRequest, view: &ResponseView, ended: Option<&Outcome>) -> u64 {
    match (request.is_streamed, ended) {
        (true, _) => view.journal.next_event,
        (false, Some(outcome)) => output_events(outcome).len() as u64,
        (false, None) => 0,
    }
}

fn are_expired(shared: &Shared, outcome: &Outcome) -> bool {
    let since = shared.clock.now_ms().saturating_sub(outcome.ended_ms);
    Duration::from_millis(since) >= EVENT_RETENTION
}

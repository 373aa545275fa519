//! Streams the events of a run, as lines or as server-sent events.
//!
//! A stream begins with event 1, `run_started`, and ends with event 2, which reports the end of the run. Events for
//! changes to the run's keys and tasks are sent only with `?include=state`, because clients fail on unknown events.
//! These events are numbered separately, also starting at 1.

use std::collections::VecDeque;
use std::time::Duration;

use actix_web::{HttpResponse, web};
use bytes::Bytes;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::event_query::EventQuery;
use super::lines::{ENDED_SEQ, Line, STARTED_SEQ, ended, started, state_event};
use super::request::RelayRequest;
use super::{ModelRelay, RelayError};
use threadkeep_domain::Refusal;
use threadkeep_domain::scope::StoredItem;
use threadkeep_http::{COMMENT, EVENT_STREAM, cut_at_error, streamed};
use threadkeep_service::{Run, RunStatus, ServiceError};

/// Interval at which a waiting stream reads its run.
const POLL_EVERY: Duration = Duration::from_millis(250);
/// Maximum number of state events in memory. The number is low, because each event may contain a whole task list.
const STATE_EVENTS_MAX: usize = 16;
/// How long the store may fail before the stream is cut.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Reasons to cut a connection before its run ends. The connection is cut, because clients take a normal end of the
/// stream to mean that the run has ended.
#[derive(Debug, thiserror::Error)]
enum Cut {
    #[error("the server stops")]
    Stopped,
    #[error("the run is gone, or cannot be read")]
    Lost,
}

struct Feed {
    relay: web::Data<ModelRelay>,
    run: Run,
    query: EventQuery,
    queue: VecDeque<Line>,
    /// The next state events. Rendered one at a time, so that the worker's other tasks can run in between, because
    /// rendering a large task list is slow.
    state_items: VecDeque<StoredItem>,
    /// True if the stream ends after the queued events.
    is_ending: bool,
    failing_since: Option<Instant>,
    silent_since: Instant,
    stop: CancellationToken,
}

/// `GET /runs/{id}/events`
pub(super) async fn get_events(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let id: Uuid = request.id()?;
    let query = EventQuery::of(&request)?;
    let run = request.protocol.runs.get(id).await?;
    let media_type = if query.as_sse {
        EVENT_STREAM
    } else {
        "application/x-ndjson"
    };
    let feed = Feed {
        stop: request.protocol.events.streams_end(),
        relay: request.protocol,
        run,
        query,
        queue: VecDeque::new(),
        state_items: VecDeque::new(),
        is_ending: false,
        failing_since: None,
        silent_since: Instant::now(),
    };
    Ok(cut_at_error(streamed(media_type), feed, Feed::next))
}

impl Feed {
    /// Returns the next item to send, or `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Cut> {
        let heartbeat = self.relay.events.heartbeat();
        loop {
            if self.query.limit == Some(0) {
                return Ok(None);
            }
            if let Some(line) = self.queue.pop_front() {
                return Ok(Some(self.send(&line)));
            }
            if let Some(item) = self.state_items.pop_front() {
                yield_now().await;
                let line = state_event(&self.run, self.query.seq, &item);
                let line = line.map_err(|error| lost(&error.into()))?;
                return Ok(Some(self.send(&line)));
            }
            if self.is_ending {
                return Ok(None);
            }
            if self.fill().await? {
                continue;
            }
            if self.silent_since.elapsed() >= heartbeat {
                self.silent_since = Instant::now();
                let silence = if self.query.as_sse { COMMENT } else { "\n" };
                return Ok(Some(Bytes::from_static(silence.as_bytes())));
            }
            tokio::select! {
                () = sleep(POLL_EVERY) => {}
                // clients of server-sent events reconnect automatically
                () = self.stop.cancelled() => {
                    return if self.query.as_sse { Ok(None) } else { Err(Cut::Stopped) };
                }
            }
            self.refresh().await?;
        }
    }

    /// Reads the current state of the run.
    async fn refresh(&mut self) -> Result<(), Cut> {
        match self.relay.runs.get(self.run.id).await {
            Ok(run) => {
                self.failing_since = None;
                self.run = run;
                Ok(())
            }
            Err(error) => self.tolerate(&error),
        }
    }

    /// Queues new events of the run. Returns false if the stream must wait for further events.
    async fn fill(&mut self) -> Result<bool, Cut> {
        if self.query.seq < STARTED_SEQ {
            self.query.seq = STARTED_SEQ;
            let line = started(&self.run, self.query.state_seq);
            self.queue.push_back(line);
            return Ok(true);
        }
        if let Some(after) = self.query.state_seq
            && after < self.run.last_event_seq
        {
            match self.fill_state(after).await {
                Ok(is_more) => return Ok(is_more),
                Err(error) => {
                    self.tolerate(&error)?;
                    return Ok(false);
                }
            }
        }
        if self.run.status != RunStatus::Running {
            self.is_ending = true;
            if self.query.seq < ENDED_SEQ {
                self.queue.extend(ended(&self.run, self.query.state_seq));
            }
        }
        self.is_ending |= !self.query.waits;
        Ok(self.is_ending)
    }

    async fn fill_state(&mut self, after: u64) -> Result<bool, ServiceError> {
        let id = self.run.id;
        let items = self.relay.runs.told(id, after, STATE_EVENTS_MAX).await?;
        let Some(last) = items.last() else {
            // the history has dropped the requested events, so the stream skips them
            self.query.state_seq = Some(self.run.last_event_seq);
            return Ok(true);
        };
        self.query.state_seq = Some(last.seq);
        self.state_items.extend(items);
        Ok(true)
    }

    /// Tolerates store errors for up to [`WAIT_TIMEOUT`].
    fn tolerate(&mut self, error: &ServiceError) -> Result<(), Cut> {
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        let is_gone = matches!(error, ServiceError::Refused(Refusal::ScopeNotFound));
        if is_gone || since.elapsed() >= WAIT_TIMEOUT {
            return Err(lost(error));
        }
        Ok(())
    }

    fn send(&mut self, line: &Line) -> Bytes {
        self.silent_since = Instant::now();
        if let Some(limit) = &mut self.query.limit {
            *limit -= 1;
        }
        let Line {
            event,
            json,
            seq,
            state_seq,
        } = line;
        let text = match (self.query.as_sse, state_seq) {
            (false, _) => format!("{json}\n"),
            (true, None) => format!("event: {event}\nid: {seq}\ndata: {json}\n\n"),
            (true, Some(state_seq)) => {
                format!("event: {event}\nid: {seq}:{state_seq}\ndata: {json}\n\n")
            }
        };
        text.into()
    }
}

fn lost(error: &ServiceError) -> Cut {
    tracing::debug!(%error, "event stream of a run ended");
    Cut::Lost
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;

    use futures_util::FutureExt as _;

    use super::*;
    use threadkeep_domain::scope::ScopePolicies;
    use threadkeep_domain::{Json, KeyRing, SigningKey, ThreadPolicy};
    use threadkeep_events::{EventSettings, Events};
    use threadkeep_identity::ApiKeys;
    use threadkeep_service::tools::Toolbox;
    use threadkeep_service::{
        Creation, RunPlan, RunService, ScopeService, SessionService, StateHandleService,
        ThreadService,
    };
    use threadkeep_store::{Backend, Clock};
    use threadkeep_store_memory::MemoryStore;

    const SILENCE: Duration = Duration::from_millis(1);

    fn relay() -> ModelRelay {
        let store = Arc::new(MemoryStore::new(Clock::system()));
        let timeout = Duration::from_secs(2);
        let threads = ThreadService::new(Arc::clone(&store) as _, ThreadPolicy::THREAD, timeout);
        let policies = ScopePolicies::DEFAULT;
        let scopes = ScopeService::new(Arc::clone(&store) as _, threads, policies, timeout);
        let listings = || Arc::clone(&store) as _;
        let settings = EventSettings {
            heartbeat: SILENCE,
            ..EventSettings::default()
        };
        let key = SigningKey::new("main", b"secret");
        ModelRelay {
            handles: StateHandleService::new(scopes.clone(), listings(), Clock::system()),
            sessions: SessionService::new(scopes.clone(), listings(), Clock::system()),
            runs: RunService::new(scopes.clone()),
            tools: Toolbox::new(scopes.clone()),
            scopes,
            responses: None,
            events: Events::start(Arc::clone(&store) as Arc<dyn Backend>, settings),
            ring: KeyRing::new(vec![key]).unwrap(),
            api_keys: ApiKeys::default(),
        }
    }

    async fn feed(as_sse: bool) -> Feed {
        let relay = relay();
        let plan = RunPlan {
            plan_hash: "0".repeat(64),
            workflow_id: None,
            session_id: None,
            state_id: None,
        };
        let run = relay.runs.create(&Creation::new(), plan).await.unwrap();
        Feed {
            stop: relay.events.streams_end(),
            relay: web::Data::new(relay),
            run,
            query: EventQuery {
                seq: STARTED_SEQ,
                state_seq: None,
                limit: None,
                waits: true,
                as_sse,
            },
            queue: VecDeque::new(),
            state_items: VecDeque::new(),
            is_ending: false,
            failing_since: None,
            silent_since: Instant::now(),
        }
    }

    #[actix_web::test]
    async fn a_waiting_reader_gets_keepalives() {
        for (as_sse, silence) in [(false, "\n"), (true, COMMENT)] {
            let mut feed = feed(as_sse).await;

            for _ in 0..2 {
                let part = feed.next().await.unwrap().unwrap();
                assert_eq!(part, silence);
            }
        }
    }

    #[actix_web::test]
    async fn other_tasks_run_before_each_state_event() {
        let mut feed = feed(false).await;
        for seq in [1, 2] {
            feed.state_items.push_back(StoredItem {
                seq,
                id: seq.to_string().parse().unwrap(),
                value: Json::parse(r#"{"type":"kv_updated","keys":null}"#).unwrap(),
                at_ms: 0,
            });
        }

        for seq in [1, 2] {
            let mut next = pin!(feed.next());
            assert!(next.as_mut().now_or_never().is_none());
            let line = next.await.unwrap().unwrap();
            let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
            assert_eq!(line["seq"], seq);
        }
    }

    #[actix_web::test]
    async fn lines_are_cut_and_server_sent_events_end_when_the_server_stops() {
        let mut lines = feed(false).await;
        lines.relay.events.end_streams();
        lines.silent_since += Duration::from_secs(60);
        assert!(matches!(lines.next().await, Err(Cut::Stopped)));

        let mut sse = feed(true).await;
        sse.relay.events.end_streams();
        sse.silent_since += Duration::from_secs(60);
        assert!(matches!(sse.next().await, Ok(None)));
    }

    #[actix_web::test]
    async fn a_deleted_run_cuts_the_stream() {
        let mut feed = feed(false).await;
        feed.silent_since += Duration::from_secs(60);
        feed.run.id = Uuid::nil();

        assert!(matches!(feed.next().await, Err(Cut::Lost)));
    }
}

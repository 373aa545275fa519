use std::time::Duration;

use bytes::Bytes;
use threadkeep_domain::scope::{KvOperation, ScopeWrite};
use threadkeep_domain::{
    Access, Fingerprint, Owner, OwnerChange, Refusal, ResponseId, TakeTurn, TurnGranted, TurnToken,
    Write,
};
use threadkeep_store::{
    Answered, BeginResponse, Begun, EndResponse, EndWrite, Floor, HistoryFrom, Journal,
    JournalEntry, Journaled, ResponseEvents, ResponseView,
};

use super::room::{Room, Subject, refused, set};
use super::scope_room::{self, Scope};

pub(crate) const LEASE: Duration = Duration::from_secs(15);
pub(crate) const RETENTION: Duration = Duration::from_secs(600);
pub(crate) const DUE_AFTER: Duration = Duration::from_secs(60);
pub(crate) const ANSWER_RETENTION: Duration = Duration::from_secs(604_800);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A response under test: a run of a model in a scope. The holder of a token drives the run.
pub(crate) struct Response<'a> {
    pub(crate) room: &'a Room,
    pub(crate) scope: &'a Scope,
    pub(crate) id: ResponseId,
    pub(crate) floor: Floor,
}

pub(crate) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub(crate) fn request() -> Bytes {
    bytes("a request")
}

pub(crate) async fn living(room: &Room) -> Subject {
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    thread
}

impl<'a> Response<'a> {
    /// Returns a response that takes its scope's turn (exclusive lock), or the thread's turn if the scope has a thread.
    pub(crate) fn new(room: &'a Room, scope: &'a Scope) -> Self {
        let bucket = room.backend.bucket_of_scope(&scope.id);
        Self {
            room,
            scope,
            id: ResponseId::in_bucket(bucket, rand::random()),
            floor: Floor::Taken,
        }
    }

    pub(crate) fn with(self, floor: Floor) -> Self {
        Self { floor, ..self }
    }

    pub(crate) async fn begin_as(
        &self,
        token: TurnToken,
        request: &Bytes,
    ) -> Result<Begun, Refusal> {
        self.try_begin(token, request, Some(request)).await
    }

    async fn try_begin(
        &self,
        token: TurnToken,
        fingerprinted: &Bytes,
        request: Option<&Bytes>,
    ) -> Result<Begun, Refusal> {
        let begin = BeginResponse {
            scope: &self.scope.id,
            access: Access::All,
            token,
            lease: LEASE,
            kept: RETENTION,
            due: DUE_AFTER,
            floor: self.floor,
            request,
            fingerprint: Fingerprint::of(&[fingerprinted]),
        };
        refused(self.room.backend.begin_response(&self.id, &begin).await)
    }

    pub(crate) async fn begin_without_request(&self, token: TurnToken) -> Begun {
        self.try_begin(token, &request(), None).await.unwrap()
    }

    pub(crate) async fn begin(&self, token: TurnToken) -> Begun {
        self.begin_as(token, &request()).await.unwrap()
    }

    /// Begins a new response. Returns the token of its driver.
    pub(crate) async fn begin_new(&self) -> TurnToken {
        let token = TurnToken::random();
        assert_eq!(self.begin(token).await, Begun::New);
        token
    }

    /// Advances the clock past the lease of the current driver, and resumes the response with a new driver.
    pub(crate) async fn take_over(&self) -> (TurnToken, Journal) {
        self.room.advance(LEASE);
        let token = TurnToken::random();
        match self.begin(token).await {
            Begun::Resumed(journal) => (token, journal),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn keep(&self, token: TurnToken) -> Result<(), Refusal> {
        let backend = &self.room.backend;
        refused(
            backend
                .keep_response(&self.id, &self.scope.id, token, LEASE)
                .await,
        )
    }

    pub(crate) async fn note_with(
        &self,
        token: TurnToken,
        number: u64,
        entry: &str,
        operations: &[KvOperation],
    ) -> Result<Journaled, Refusal> {
        let write = ScopeWrite {
            operations,
            ..self.scope.blank()
        };
        let write = (!operations.is_empty()).then_some(&write);
        self.journal(token, number, entry, (0, &[]), write).await
    }

    /// Writes a journal entry with `events`: the sequence number of the first event, and the text of each event.
    pub(crate) async fn note_with_events(
        &self,
        token: TurnToken,
        number: u64,
        entry: &str,
        events: (u64, &[&str]),
    ) -> Result<Journaled, Refusal> {
        self.journal(token, number, entry, events, None).await
    }

    async fn journal(
        &self,
        token: TurnToken,
        number: u64,
        entry: &str,
        (first, events): (u64, &[&str]),
        write: Option<&ScopeWrite<'_>>,
    ) -> Result<Journaled, Refusal> {
        let events: Vec<_> = events.iter().map(|event| bytes(event)).collect();
        let entry = JournalEntry {
            token,
            number,
            entry: &bytes(entry),
            events: (first, &events),
        };
        let (backend, scope) = (&self.room.backend, &self.scope.id);
        refused(backend.journal(&self.id, scope, &entry, write).await)
    }

    pub(crate) async fn note(
        &self,
        token: TurnToken,
        number: u64,
        entry: &str,
    ) -> Result<Journaled, Refusal> {
        self.note_with(token, number, entry, &[]).await
    }

    pub(crate) async fn append_events(
        &self,
        token: TurnToken,
        first: u64,
        events: &[&str],
    ) -> Result<(), Refusal> {
        let events: Vec<_> = events.iter().map(|event| bytes(event)).collect();
        refused(
            self.room
                .backend
                .append_events(&self.id, token, first, &events)
                .await,
        )
    }

    pub(crate) async fn events(&self, from: u64) -> Option<(Vec<String>, bool)> {
        let page = self
            .room
            .backend
            .read_events(&self.id, from, 1_000)
            .await
            .unwrap();
        page.map(|ResponseEvents { events, has_ended }| {
            let text = |event: &Bytes| String::from_utf8(event.to_vec()).unwrap();
            (events.iter().map(text).collect(), has_ended)
        })
    }

    pub(crate) async fn end(
        &self,
        token: Option<TurnToken>,
        entries: u64,
        answer: &str,
    ) -> Result<Answered<Bytes>, Refusal> {
        let items = [scope_room::item(&format!("{}-1", self.id), "1")];
        let write = ScopeWrite {
            history: &items,
            ..self.scope.blank()
        };
        self.end_with(token, entries, answer, Some(&write)).await
    }

    pub(crate) async fn end_with(
        &self,
        token: Option<TurnToken>,
        entries: u64,
        answer: &str,
        write: Option<&ScopeWrite<'_>>,
    ) -> Result<Answered<Bytes>, Refusal> {
        let next_event = self.view().await.map_or(0, |view| view.journal.next_event);
        self.end_after(token, (entries, next_event), answer, write)
            .await
    }

    pub(crate) async fn end_after(
        &self,
        token: Option<TurnToken>,
        (entries, next_event): (u64, u64),
        answer: &str,
        write: Option<&ScopeWrite<'_>>,
    ) -> Result<Answered<Bytes>, Refusal> {
        let write = write.map(EndWrite::Scope);
        self.end_writing(token, (entries, next_event), answer, write)
            .await
    }

    pub(crate) async fn end_writing(
        &self,
        token: Option<TurnToken>,
        (entries, next_event): (u64, u64),
        answer: &str,
        write: Option<EndWrite<'_>>,
    ) -> Result<Answered<Bytes>, Refusal> {
        let last = [bytes("last")];
        let answer = bytes(answer);
        let end = EndResponse {
            token,
            entries,
            events: (next_event, &last),
            answer: &answer,
            kept: ANSWER_RETENTION,
            events_kept: RETENTION,
        };
        let backend = &self.room.backend;
        refused(
            backend
                .end_response(&self.id, &self.scope.id, &end, write)
                .await,
        )
    }

    pub(crate) async fn view(&self) -> Option<ResponseView> {
        self.room.backend.get_response(&self.id).await.unwrap()
    }

    pub(crate) async fn answer(&self) -> Option<Bytes> {
        self.view().await?.answer
    }

    pub(crate) async fn history(&self) -> usize {
        let page = self.scope.page(HistoryFrom::After(0), 100).await;
        page.map_or(0, |page| page.items.len())
    }
}

pub(crate) async fn take(
    room: &Room,
    thread: &Subject,
    waits: bool,
) -> Result<TurnGranted, Refusal> {
    let take = TakeTurn {
        token: TurnToken::random(),
        ttl: LEASE,
        exclusive: false,
        waits,
        idempotency: None,
    };
    refused(room.backend.take_turn(&thread.id, Access::All, &take).await)
}

pub(crate) fn increment_n() -> [KvOperation; 1] {
    [scope_room::increment("n", 1)]
}

pub(crate) async fn owned(room: &Room) -> (Owner, Subject) {
    let owner = Owner::new(&format!("owner-{}", rand::random::<u64>())).unwrap();
    let thread = room.subject();
    let operations = [set("k", "1")];
    let write = Write {
        operations: &operations,
        owner: OwnerChange::Set(&owner),
        ..thread.blank()
    };
    thread.write(&write).await.unwrap();
    (owner, thread)
}

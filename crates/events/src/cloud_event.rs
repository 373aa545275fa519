//! Renders events as [CloudEvents
//! 1.0](https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md) in JSON.

use std::fmt::Write;

use threadkeep_domain::{
    Completed, EndReason, Event, EventKind, Json, Life, ThreadId, quoted, rfc3339,
};
use threadkeep_store::{Archive, Archives, StoreError};

/// Maximum size in bytes of a final state in an event. For a larger state, the event contains a link instead.
pub const STATE_BYTES_MAX: u64 = 262_144;

const LATEST_TIME: &str = "9999-12-31T23:59:59.999Z";

/// Renders an event as compact JSON.
///
/// The event for the end of a thread contains the final state, or a link that starts with `public_url`. Fails if the
/// final state cannot be read, because an event must not report an unreadable state as lost.
pub async fn cloud_event(
    archives: &dyn Archives,
    public_url: &str,
    event: &Event,
) -> Result<String, StoreError> {
    let mut json = envelope(event);
    match &event.kind {
        EventKind::Created { keys, restored } => {
            push_keys(&mut json, keys.as_ref());
            if *restored {
                json.push_str(r#","restored":true"#);
            }
        }
        EventKind::Updated { keys, metadata } => {
            push_keys(&mut json, keys.as_ref());
            push(&mut json, format_args!(r#","metadata_changed":{metadata}"#));
        }
        EventKind::Destroyed { reason, state_lost } => {
            let archive = if *state_lost || *reason == EndReason::Erased {
                None
            } else {
                final_state(archives, event).await?
            };
            push_end(&mut json, *reason, archive.as_ref(), public_url)?;
        }
        EventKind::Rotated { to } => push(&mut json, format_args!(r#","new_thread_id":"{to}""#)),
        EventKind::Completed(completed) => push_completed(&mut json, completed),
        EventKind::KvUpdated { keys } => push_keys(&mut json, keys.as_ref()),
        EventKind::TaskListUpdated => {}
        EventKind::HistoryAppended {
            first_seq,
            last_seq,
        } => push(
            &mut json,
            format_args!(r#","first_seq":{first_seq},"last_seq":{last_seq}"#),
        ),
        EventKind::Forked { origin } => push(
            &mut json,
            format_args!(
                r#","forked_from":{{"thread_id":"{}","version":{}}}"#,
                origin.id, origin.version
            ),
        ),
    }
    json.push_str("}}");
    Ok(json)
}

pub(super) fn with_values(mut json: String, values: &str) -> String {
    json.truncate(json.len() - 2);
    push(&mut json, format_args!(r#","values":{values}}}}}"#));
    json
}

/// Returns the URL of the final state of `life`. A life is the time from a thread's creation to its end.
#[must_use]
pub fn state_url(public_url: &str, id: &ThreadId, life: Life) -> String {
    format!("{public_url}/v1/archives/{id}?life={:016x}", life.0)
}

/// Returns the URL of the history of `life`, which has ended.
#[must_use]
pub fn history_url(public_url: &str, id: &ThreadId, life: Life) -> String {
    format!("{public_url}/v1/archives/{id}/history?life={:016x}", life.0)
}

/// Renders the members that all event types share. The subject is the thread id, or another scope, such as a session,
/// if the event does not belong to a thread.
fn envelope(event: &Event) -> String {
    let time = rfc3339(event.time_ms).unwrap_or_else(|| LATEST_TIME.into());
    let (thread, scope) = (event.thread(), &event.subject);
    let subject = thread.map_or_else(|| quoted(&scope.to_string()), |id| format!(r#""{id}""#));
    let mut json = format!(
        r#"{{"specversion":"1.0","id":"{}","source":"threadkeep","type":"{}","subject":{subject},"time":"{time}","datacontenttype":"application/json","#,
        event.id,
        event.event_type().as_str(),
    );
    if let Some(trace) = &event.trace {
        push(&mut json, format_args!(r#""traceparent":"{trace}","#));
    }
    json.push_str(r#""data":{"#);
    if let Some(id) = thread {
        push(&mut json, format_args!(r#""thread_id":"{id}","#));
    }
    if event.is_scope_change() {
        let scope = quoted(&scope.to_string());
        push(&mut json, format_args!(r#""scope":{scope},"#));
    }
    push(
        &mut json,
        format_args!(
            r#""life":"{:016x}","sequence":{},"version":{}"#,
            event.life.0, event.sequence, event.version
        ),
    );
    json
}

pub(super) async fn final_state(
    archives: &dyn Archives,
    event: &Event,
) -> Result<Option<Archive>, StoreError> {
    match event.thread() {
        Some(id) => archives.get_final(id, event.life).await,
        None => Ok(None),
    }
}

fn push_keys(json: &mut String, keys: Option<&Json>) {
    let keys = keys.map_or("null", Json::as_str);
    push(json, format_args!(r#","keys":{keys}"#));
}

fn push_end(
    json: &mut String,
    reason: EndReason,
    archive: Option<&Archive>,
    public_url: &str,
) -> Result<(), StoreError> {
    let name = reason.as_str();
    push(json, format_args!(r#","reason":"{name}""#));
    let Some(Archive { head, state, .. }) = archive else {
        json.push_str(r#","metadata":null"#);
        if reason != EndReason::Erased {
            json.push_str(r#","state_lost":true"#);
        }
        return Ok(());
    };
    let metadata = head.metadata.as_str();
    push(json, format_args!(r#","metadata":{metadata}"#));
    if !head.history.is_empty() {
        let url = history_url(public_url, &head.id, head.life);
        let url = serde_json::Value::from(url);
        push(json, format_args!(r#","history_url":{url}"#));
    }
    if state.len() as u64 > STATE_BYTES_MAX {
        let url = state_url(public_url, &head.id, head.life);
        let url = serde_json::Value::from(url);
        push(json, format_args!(r#","state_url":{url}"#));
        return Ok(());
    }
    let state = str::from_utf8(state).map_err(|_| StoreError::Corrupt("a state is no UTF-8"))?;
    push(json, format_args!(r#","state":{state}"#));
    Ok(())
}

fn push_completed(json: &mut String, completed: &Completed) {
    let Completed {
        session,
        status,
        duration_ms,
    } = completed;
    let session = serde_json::Value::from(session.as_str());
    push(
        json,
        format_args!(r#","session_id":{session},"status":{status},"duration_ms":{duration_ms}"#),
    );
}

fn push(json: &mut String, text: std::fmt::Arguments<'_>) {
    json.write_fmt(text)
        .expect("writing to a string never fails");
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use serde_json::value::RawValue;

    use super::*;
    use threadkeep_domain::scope::{HistorySummary, ScopeId};
    use threadkeep_domain::{EventId, Position, Thread, ThreadPolicy};
    use threadkeep_store::{ArchiveHead, ArchivePage, ArchivePosition, WriteError};

    const ID: &str = "thrd_0123456789abcdef0123456789abcdef";

    #[derive(Debug)]
    struct StubArchives(Option<Archive>);

    #[async_trait]
    impl Archives for StubArchives {
        async fn get_archive(
            &self,
            _: &ThreadId,
            _: Option<Life>,
        ) -> Result<Option<Archive>, StoreError> {
            Ok(None)
        }

        async fn get_final(&self, _: &ThreadId, _: Life) -> Result<Option<Archive>, StoreError> {
            match &self.0 {
                Some(archive) => Ok(Some(archive.clone())),
                None => Err(StoreError::Timeout(1)),
            }
        }

        async fn list_archives(
            &self,
            _: &ArchivePosition,
            _: usize,
        ) -> Result<ArchivePage, StoreError> {
            Err(StoreError::Timeout(1))
        }

        async fn restore(
            &self,
            _: &ThreadId,
            _: Option<Life>,
            _: &ThreadPolicy,
        ) -> Result<Option<Thread>, WriteError> {
            Ok(None)
        }
    }

    fn archives_with(state: String) -> StubArchives {
        StubArchives(Some(Archive {
            head: ArchiveHead {
                id: ID.parse().unwrap(),
                life: Life(10),
                version: 3,
                size_bytes: state.len() as u64,
                reason: EndReason::Expired,
                ended_ms: 0,
                archived_ms: 0,
                metadata: Json::parse(r#"{"n":1e400}"#).unwrap(),
                history: HistorySummary::EMPTY,
                checkpoints: Vec::new(),
            },
            owner: None,
            state: state.into(),
        }))
    }

    fn event(kind: EventKind) -> Event {
        Event {
            id: EventId {
                bucket: 255,
                position: Position {
                    ms: 1_700_000_000_123,
                    seq: 7,
                },
            },
            subject: ScopeId::Thread(ID.parse().unwrap()),
            time_ms: 1_700_000_000_123,
            life: Life(10),
            version: 3,
            sequence: 2,
            trace: None,
            kind,
        }
    }

    fn destroyed(state_lost: bool) -> Event {
        let reason = EndReason::Expired;
        event(EventKind::Destroyed { reason, state_lost })
    }

    async fn rendered(archives: &StubArchives, event: &Event) -> (String, String) {
        let text = cloud_event(archives, "https://t.example", event)
            .await
            .unwrap();
        let _: &RawValue = serde_json::from_str(&text).unwrap();
        let (_, rest) = text.split_once(r#""version":3"#).unwrap();
        let rest = rest.strip_suffix("}}").unwrap().to_owned();
        (text, rest)
    }

    #[tokio::test]
    async fn an_event_has_all_cloud_events_attributes() {
        let keys = Some(Json::parse(r#"["a","\ud800"]"#).unwrap());
        let restored = false;
        let created = event(EventKind::Created { keys, restored });

        let (text, _) = rendered(&StubArchives(None), &created).await;

        assert_eq!(
            text,
            concat!(
                r#"{"specversion":"1.0","id":"evt_00ff018bcfe5687b0000000007","#,
                r#""source":"threadkeep","type":"thread.created","#,
                r#""subject":"thrd_0123456789abcdef0123456789abcdef","#,
                r#""time":"2023-11-14T22:13:20.123Z","datacontenttype":"application/json","#,
                r#""data":{"thread_id":"thrd_0123456789abcdef0123456789abcdef","#,
                r#""life":"000000000000000a","sequence":2,"version":3,"#,
                r#""keys":["a","\ud800"]}}"#,
            )
        );
    }

    #[tokio::test]
    async fn an_event_of_a_traced_request_has_a_traceparent_attribute() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let traced = Event {
            trace: Some(Box::new(text.parse().unwrap())),
            ..event(EventKind::TaskListUpdated)
        };

        let (json, _) = rendered(&StubArchives(None), &traced).await;

        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["traceparent"], text);
        assert!(json["data"].is_object());
    }

    #[tokio::test]
    async fn the_end_of_a_thread_with_a_history_links_to_it() {
        let StubArchives(Some(mut archive)) = archives_with("{}".into()) else {
            panic!("the stub has an archive")
        };
        archive.head.history.next_seq = 3;

        let (_, rest) = rendered(&StubArchives(Some(archive)), &destroyed(false)).await;

        let url = format!("https://t.example/v1/archives/{ID}/history?life=000000000000000a");
        assert!(
            rest.contains(&format!(r#","history_url":"{url}","state":"#)),
            "{rest}"
        );
    }

    #[tokio::test]
    async fn a_scope_event_names_its_scope() {
        let keys = Some(Json::parse(r#"["k"]"#).unwrap());
        let of_thread = event(EventKind::KvUpdated { keys });
        let of_tool = Event {
            subject: "tool:a\"b".parse().unwrap(),
            ..event(EventKind::TaskListUpdated)
        };

        let (text, rest) = rendered(&StubArchives(None), &of_thread).await;
        let data = format!(r#""data":{{"thread_id":"{ID}","scope":"thread:{ID}","life""#);
        assert!(text.contains(&data), "{text}");
        assert_eq!(rest, r#","keys":["k"]"#);
        let (text, rest) = rendered(&StubArchives(None), &of_tool).await;
        assert!(text.contains(r#""subject":"tool:a\"b","time""#), "{text}");
        assert!(
            text.contains(r#""data":{"scope":"tool:a\"b","life""#),
            "{text}"
        );
        assert_eq!(rest, "");
    }

    #[tokio::test]
    async fn each_event_type_has_its_own_data() {
        let restored = event(EventKind::Created {
            keys: None,
            restored: true,
        });
        let updated = event(EventKind::Updated {
            keys: Some(Json::parse("[]").unwrap()),
            metadata: true,
        });
        let rotated = event(EventKind::Rotated {
            to: "thrd_fedcba9876543210fedcba9876543210".parse().unwrap(),
        });
        let completed = event(EventKind::Completed(Completed {
            session: "sess_\"".into(),
            status: 200,
            duration_ms: 12,
        }));

        let appended = event(EventKind::HistoryAppended {
            first_seq: 7,
            last_seq: 9,
        });

        for (event, rest) in [
            (appended, r#","first_seq":7,"last_seq":9"#),
            (restored, r#","keys":null,"restored":true"#),
            (updated, r#","keys":[],"metadata_changed":true"#),
            (
                rotated,
                r#","new_thread_id":"thrd_fedcba9876543210fedcba9876543210""#,
            ),
            (
                completed,
                r#","session_id":"sess_\"","status":200,"duration_ms":12"#,
            ),
        ] {
            assert_eq!(rendered(&StubArchives(None), &event).await.1, rest);
        }
    }

    #[tokio::test]
    async fn an_end_event_has_the_exact_final_state_or_a_link_to_it() {
        let limit = STATE_BYTES_MAX as usize;
        let state = |bytes: usize| format!(r#"{{"k":"{}"}}"#, "x".repeat(bytes - 8));
        let small = r#"{"n":9007199254740993,"n":1.0}"#.to_owned();
        let reason = r#","reason":"expired","metadata":{"n":1e400},"#;

        for inside in [small, state(limit)] {
            let (_, rest) = rendered(&archives_with(inside.clone()), &destroyed(false)).await;
            assert_eq!(rest, format!(r#"{reason}"state":{inside}"#));
        }
        let (_, rest) = rendered(&archives_with(state(limit + 1)), &destroyed(false)).await;
        assert_eq!(
            rest,
            format!(
                r#"{reason}"state_url":"https://t.example/v1/archives/{ID}?life=000000000000000a""#
            )
        );
    }

    #[tokio::test]
    async fn the_end_of_an_erased_thread_is_rendered_without_reading_its_state() {
        let reason = EndReason::Erased;
        let erased = event(EventKind::Destroyed {
            reason,
            state_lost: false,
        });

        let (_, rest) = rendered(&StubArchives(None), &erased).await;

        assert_eq!(rest, r#","reason":"erased","metadata":null"#);
    }

    #[tokio::test]
    async fn an_unreadable_state_is_not_reported_as_lost() {
        let failed = cloud_event(&StubArchives(None), "", &destroyed(false)).await;
        let (_, lost) = rendered(&StubArchives(None), &destroyed(true)).await;

        assert!(matches!(failed, Err(StoreError::Timeout(1))));
        assert_eq!(
            lost,
            r#","reason":"expired","metadata":null,"state_lost":true"#
        );
    }
}

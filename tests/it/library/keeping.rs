//! Tests an app that stores the final state of each thread as an entry in a namespace, where it outlives the thread.

use std::sync::Arc;
use std::time::Duration;

use threadkeep_domain::{
    ContentType, EntryKey, EntryPolicy, EventType, Namespace, Precondition, Refusal,
};
use threadkeep_events::{EventSettings, Events, Notice};
use threadkeep_service::{EntryDraft, NamespaceService, ServiceError};
use threadkeep_store::{EntryRange, EntryTerms, Reading};

use crate::conformance::over_every_store;
use crate::conformance::room::{Room, set};
use crate::support::until;

/// Stores the final state of each life (incarnation of a thread) only once, even if the end event is delivered twice.
async fn store_final_state(entries: NamespaceService, notice: Notice) -> Result<(), ServiceError> {
    let Some(archive) = notice.archive else {
        return Ok(());
    };
    let namespace = Namespace::new("conversations").unwrap();
    let key = format!("{}/{:016x}", archive.head.id, archive.head.life.0);
    let key = EntryKey::new(&key).unwrap();
    let json = ContentType::new("application/json").unwrap();
    let draft = EntryDraft::new(json, archive.state);
    let once = EntryTerms {
        precondition: Some(Precondition::Version(0)),
        ..EntryTerms::default()
    };
    match entries.put(&namespace, &key, draft, once).await {
        Err(ServiceError::Refused(Refusal::VersionMismatch { .. })) | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn an_app_keeps_the_final_state_of_each_thread(room: Room) {
    let entries = NamespaceService::new(Arc::clone(&room.backend) as _, EntryPolicy::DEFAULT);
    let settings = EventSettings {
        poll_every: Duration::from_millis(5),
        ..EventSettings::default()
    };
    let events = Events::start(Arc::clone(&room.backend), settings);
    let ends = [EventType::ThreadDestroyed].into_iter().collect();
    let service = entries.clone();
    let handler = move |notice| store_final_state(service.clone(), notice);
    events.subscribe("keeper", ends, handler).await.unwrap();
    let namespace = Namespace::new("conversations").unwrap();
    let threads: Vec<_> = (0..10).map(|_| room.subject()).collect();

    for (number, thread) in threads.iter().enumerate() {
        thread.merge(&[set("n", &format!("{number}.0"))]).await;
        thread.destroy().await;
    }

    let count = async || {
        let names = [namespace.clone()];
        let views = entries.describe(&names).await.unwrap();
        views.first().map_or(0, |view| view.usage.entries)
    };
    until(async || count().await == 10).await;
    for (number, thread) in threads.iter().enumerate() {
        let range = EntryRange {
            prefix: thread.id.as_str(),
            ..EntryRange::default()
        };
        let page = entries.list(&namespace, range, 10).await.unwrap();
        let (key, _) = &page.entries[0];
        let entry = entries.get(&namespace, key, Reading::Plain).await.unwrap();
        assert_eq!(entry.body, format!("{{\"n\":{number}.0}}"));
    }
    events.shutdown().await;
}

over_every_store!(an_app_keeps_the_final_state_of_each_thread);

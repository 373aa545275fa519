//! Parses requests.
//!
//! Unknown members are ignored, so that newer clients can send more members. Values remain JSON text, and are not
//! parsed further.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::super::leading::Leading;
use super::envelope::read_envelope;
use super::error::RequestError;
use super::id::RequestId;
use super::limits::OPERATIONS_MAX;
use super::operations::read_operations;
use crate::object::Object;
use threadkeep_domain::{Json, KeyedValues, Operation, ThreadId};

#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: RequestId,
    pub(super) thread: ThreadId,
    pub(super) action: Action,
}

#[derive(Debug)]
pub(super) enum Action {
    Restore,
    Save {
        state: KeyedValues,
        metadata: Option<Json>,
    },
    Merge {
        operations: Vec<Operation>,
        metadata: Option<Json>,
    },
    Delete,
}

/// A message that is not a valid request. `id` is the id of the message, if it is readable.
#[derive(Debug)]
pub(super) struct Unreadable {
    pub(super) id: Option<RequestId>,
    pub(super) why: RequestError,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    action: Option<String>,
    #[serde(borrow)]
    data: Option<Object<Data<'a>>>,
}

#[derive(Deserialize)]
struct Data<'a> {
    thread_id: Option<String>,
    user_data: Option<String>,
    #[serde(borrow)]
    operations: Option<Leading<&'a RawValue, { OPERATIONS_MAX + 1 }>>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

impl Action {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Restore => "restore",
            Self::Save { .. } => "save",
            Self::Merge { .. } => "merge",
            Self::Delete => "delete",
        }
    }
}

impl Request {
    /// Parses a message. A state may have up to `max_keys` keys.
    pub(super) fn read(text: &[u8], max_keys: u32) -> Result<Self, Unreadable> {
        let unreadable = |why| Unreadable {
            id: RequestId::find_in(text),
            why,
        };
        // RFC 6455, section 8.1, requires closing the connection, but that would lose the requests in flight
        let text = str::from_utf8(text).map_err(|_| unreadable(RequestError::NotUtf8))?;
        let Object::<Message<'_>>(message) = serde_json::from_str(text)
            .map_err(|error| unreadable(RequestError::of_json(&error)))?;
        let Some(id) = message.id.and_then(RequestId::of) else {
            let why = RequestError::NoId;
            return Err(Unreadable { id: None, why });
        };
        match message.read(max_keys) {
            Ok((thread, action)) => Ok(Self { id, thread, action }),
            Err(why) => Err(Unreadable { id: Some(id), why }),
        }
    }
}

impl Message<'_> {
    fn read(self, max_keys: u32) -> Result<(ThreadId, Action), RequestError> {
        let Object(data) = self.data.ok_or(RequestError::Missing("data"))?;
        let action = match self.action.as_deref() {
            Some("restore") => Action::Restore,
            Some("save") => data.read_save(max_keys)?,
            Some("merge") => data.read_merge()?,
            Some("delete") => Action::Delete,
            _ => return Err(RequestError::UnknownAction),
        };
        let thread = data.thread_id.ok_or(RequestError::Missing("thread_id"))?;
        Ok((thread.parse()?, action))
    }
}

impl Data<'_> {
    fn read_save(&self, max_keys: u32) -> Result<Action, RequestError> {
        let missing = RequestError::Missing("user_data");
        let user_data = self.user_data.as_deref().ok_or(missing)?;
        Ok(Action::Save {
            state: read_envelope(user_data, max_keys)?,
            metadata: self.read_metadata()?,
        })
    }

    /// Reads a merge. The client omits empty metadata, so a merge with neither operations nor metadata sets the
    /// metadata to `{}`.
    fn read_merge(&self) -> Result<Action, RequestError> {
        let missing = RequestError::Missing("operations");
        let operations = read_operations(self.operations.as_deref().ok_or(missing)?)?;
        let metadata = self.read_metadata()?;
        let is_empty = operations.is_empty() && metadata.is_none();
        Ok(Action::Merge {
            operations,
            metadata: metadata.or_else(|| is_empty.then(Json::empty_object)),
        })
    }

    fn read_metadata(&self) -> Result<Option<Json>, RequestError> {
        let read = |json: &RawValue| Json::parse_object(json.get(), 1);
        Ok(self.metadata.map(read).transpose()?)
    }
}

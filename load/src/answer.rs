use reqwest::header::{CONTENT_TYPE, ETAG, HeaderMap};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
#[error("{what}: {detail}")]
pub(crate) struct Wrong {
    /// A short description, which must be the same for all faults of the same kind.
    pub(crate) what: &'static str,
    pub(crate) detail: String,
}

impl Wrong {
    pub(crate) fn new(what: &'static str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { what, detail }
    }
}

pub(crate) fn same<T: PartialEq + std::fmt::Debug>(
    what: &'static str,
    found: T,
    expected: T,
) -> Result<(), Wrong> {
    if found == expected {
        Ok(())
    } else {
        Err(Wrong::new(
            what,
            format!("{found:?} instead of {expected:?}"),
        ))
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) version: u64,
    pub(crate) size_bytes: u64,
    pub(crate) length: Option<u64>,
    pub(crate) value: Option<i64>,
    pub(crate) deleted: Option<bool>,
    pub(crate) results: Option<Vec<OperationResult>>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct OperationResult {
    pub(crate) length: Option<u64>,
    pub(crate) value: Option<i64>,
    pub(crate) deleted: Option<bool>,
}

/// The members of an error response that the test checks.
#[derive(Debug, Deserialize)]
pub(crate) struct Problem {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) current_version: Option<u64>,
    pub(crate) size_bytes: Option<u64>,
    pub(crate) attempted_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) version: u64,
    pub(crate) life: String,
    /// The value of the header.
    pub(crate) text: String,
}

impl Answer {
    /// Checks the status and the session id.
    pub(crate) fn expect(&self, status: u16) -> Result<(), Wrong> {
        self.check_session()?;
        if self.status == status {
            return Ok(());
        }
        let start = &self.body[..self.body.len().min(300)];
        let detail = format!(
            "{} instead of {status}: {}",
            self.status,
            String::from_utf8_lossy(start)
        );
        Err(Wrong::new("another status", detail))
    }

    pub(crate) fn problem(&self, status: u16, code: &str) -> Result<Problem, Wrong> {
        self.expect(status)?;
        let content_type = self.header(CONTENT_TYPE.as_str())?;
        same("the type", content_type, "application/problem+json")?;
        let problem: Problem = self.json()?;
        same("the problem's status", problem.status, status)?;
        same("the problem's code", problem.code.as_str(), code)?;
        Ok(problem)
    }

    pub(crate) fn receipt(&self) -> Result<Receipt, Wrong> {
        let receipt: Receipt = self.json()?;
        let tag = self.tag()?;
        same("version of tag and receipt", tag.version, receipt.version)?;
        Ok(receipt)
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Wrong> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Wrong::new("another body", error.to_string()))
    }

    pub(crate) fn elements(&self) -> Result<Vec<&str>, Wrong> {
        let elements: Vec<&RawValue> = serde_json::from_slice(&self.body)
            .map_err(|error| Wrong::new("no array", error.to_string()))?;
        Ok(elements.into_iter().map(RawValue::get).collect())
    }

    pub(crate) fn text(&self) -> Result<&str, Wrong> {
        std::str::from_utf8(&self.body).map_err(|error| Wrong::new("no text", error.to_string()))
    }

    pub(crate) fn tag(&self) -> Result<Tag, Wrong> {
        let text = self.header(ETAG.as_str())?;
        let parts = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'))
            .and_then(|text| text.split_once('-'))
            .and_then(|(version, life)| Some((version.parse().ok()?, life)));
        let (version, life) = parts.ok_or_else(|| Wrong::new("another tag", text))?;
        Ok(Tag {
            version,
            life: life.to_owned(),
            text: text.to_owned(),
        })
    }

    pub(crate) fn number(&self, name: &'static str) -> Result<u64, Wrong> {
        let text = self.header(name)?;
        text.parse()
            .map_err(|_| Wrong::new("a header that is no number", format!("{name}: {text}")))
    }

    pub(crate) fn header(&self, name: &'static str) -> Result<&str, Wrong> {
        let value = self.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .ok_or_else(|| Wrong::new("a header is missing", name))
    }

    pub(crate) fn thread(&self) -> Result<&str, Wrong> {
        let signed = self.header("x-thread-id")?;
        let id = signed.split_once(';').map(|(id, _)| id);
        id.ok_or_else(|| Wrong::new("an id without a signature", ""))
    }

    pub(crate) fn is_replayed(&self) -> bool {
        self.headers
            .get("idempotency-replayed")
            .is_some_and(|value| value == "true")
    }

    fn check_session(&self) -> Result<(), Wrong> {
        let session = self.header("x-session-id")?;
        let is_hex = |text: &str| text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match session.strip_prefix("sess_") {
            Some(hex) if is_hex(hex) => Ok(()),
            _ => Err(Wrong::new("another session id", session)),
        }
    }
}

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde::ser::{self, Serializer};
use serde_json::value::RawValue;

use threadkeep_domain::{
    CheckpointName, KEY_TTL_MAX, Owner, TTL_MAX, TTL_MIN, parse_rfc3339, rfc3339,
};

/// Type name by which the reader recognizes [`RawJson`].
pub(super) const RAW: &str = "threadkeep::RawJson";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawJson<'a>(pub &'a str);

#[derive(Debug, Clone, Copy)]
pub struct RawObject<'a>(pub &'a str);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Whole<const MIN: u64, const MAX: u64>(pub(crate) u64);

/// Lifetime of a thread after its last use, in seconds.
pub type ThreadTtl = Whole<{ TTL_MIN.as_secs() }, { TTL_MAX.as_secs() }>;
/// One second to one year.
pub(crate) type Seconds = Whole<1, { KEY_TTL_MAX.as_secs() }>;
#[derive(Debug)]
pub(crate) struct OwnerText(pub(crate) Owner);
/// `null` removes the owner.
#[derive(Debug)]
pub(crate) struct NewOwner(pub(crate) Option<Owner>);
#[derive(Debug)]
pub(crate) struct CheckpointNameText(pub(crate) CheckpointName);
/// Milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) u64);
pub(crate) type Version = Whole<0, { i64::MAX as u64 }>;

/// A list of `MIN` to `MAX` elements. Elements beyond `MAX` are not read.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct List<T, const MIN: usize, const MAX: usize>(pub(crate) Vec<T>);

/// Schema for an enum with a member `op` that names the variant. Used only for the schema, because the reader reads all
/// enums in this form.
#[derive(Debug)]
pub(crate) struct ByOp<T>(PhantomData<T>);

impl<T, const MIN: usize, const MAX: usize> Default for List<T, MIN, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const MIN: usize, const MAX: usize> List<T, MIN, MAX> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawJson<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(RAW, Text)
    }
}

struct Text;

impl<'de> Visitor<'de> for Text {
    type Value = RawJson<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<RawJson<'de>, E> {
        Ok(RawJson(text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawJson(text) = RawJson::deserialize(deserializer)?;
        let is_object = text.starts_with('{');
        is_object
            .then_some(Self(text))
            .ok_or_else(|| D::Error::custom("an object"))
    }
}

impl Serialize for RawJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: &RawValue = serde_json::from_str(self.0).map_err(ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl Serialize for RawObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawJson(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawJson(text) = RawJson::deserialize(deserializer)?;
        let text = serde_json::from_str::<Cow<'_, str>>(text).ok();
        text.and_then(|text| parse_rfc3339(&text))
            .map(Self)
            .ok_or_else(|| D::Error::custom("a time as in RFC 3339"))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        rfc3339(self.0).serialize(serializer)
    }
}

impl Serialize for CheckpointNameText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_str().serialize(serializer)
    }
}

impl Serialize for OwnerText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_str().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for OwnerText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawJson(text) = RawJson::deserialize(deserializer)?;
        read_owner(text)
            .map(Self)
            .ok_or_else(|| D::Error::custom("a text of 1 to 256 bytes without control characters"))
    }
}

impl<'de> Deserialize<'de> for NewOwner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawJson(text) = RawJson::deserialize(deserializer)?;
        if text == "null" {
            return Ok(Self(None));
        }
        let owner = read_owner(text).ok_or_else(|| {
            D::Error::custom("null, or a text of 1 to 256 bytes without control characters")
        });
        owner.map(|owner| Self(Some(owner)))
    }
}

impl<'de> Deserialize<'de> for CheckpointNameText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawJson(json) = RawJson::deserialize(deserializer)?;
        let text = serde_json::from_str::<Cow<'_, str>>(json).ok();
        let name = text.and_then(|text| text.parse().ok());
        name.map(Self)
            .ok_or_else(|| D::Error::custom("a text of 1 to 128 bytes without control characters"))
    }
}

fn read_owner(json: &str) -> Option<Owner> {
    let text = serde_json::from_str::<Cow<'_, str>>(json).ok()?;
    Owner::new(&text).ok()
}

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    pub fn as_duration(self) -> Duration {
        Duration::from_secs(self.0)
    }

    /// Parses decimal digits. A number that does not fit in 64 bits counts as `u64::MAX`.
    fn parse(text: &str) -> Option<Self> {
        let is_whole = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_whole.then(|| text.parse().unwrap_or(u64::MAX))?;
        (MIN..=MAX).contains(&number).then_some(Self(number))
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawJson(text) = RawJson::deserialize(deserializer)?;
        Self::parse(text).ok_or_else(|| match MAX {
            u64::MAX => D::Error::custom(format_args!("a whole number from {MIN}")),
            _ => D::Error::custom(format_args!("a whole number from {MIN} to {MAX}")),
        })
    }
}

impl<'de, T: Deserialize<'de>, const MIN: usize, const MAX: usize> Deserialize<'de>
    for List<T, MIN, MAX>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

struct Elements<T, const MIN: usize, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MIN: usize, const MAX: usize> Visitor<'de>
    for Elements<T, MIN, MAX>
{
    type Value = List<T, MIN, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {MIN} to {MAX}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut read = Vec::new();
        while read.len() < MAX {
            match list.next_element()? {
                Some(element) => read.push(element),
                None => break,
            }
        }
        let is_longer = read.len() == MAX && list.next_element::<IgnoredAny>()?.is_some();
        if is_longer || read.len() < MIN {
            return Err(Error::invalid_length(read.len(), &self));
        }
        Ok(List(read))
    }
}

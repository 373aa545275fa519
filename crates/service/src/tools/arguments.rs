//! Parses the arguments of tool calls, which are written by models.
//!
//! Uses the domain's JSON scanner, which does not round numbers. If several fields have the same name, the last one is
//! used. Error messages are written for the model.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::mistake::Mistake;
use threadkeep_domain::{Excerpt, Json, KEY_TTL_MAX, elements, is_named, members};

/// Value that many models and frameworks send instead of omitting a field.
const NULL: &str = "null";

/// The values of an object's fields, in the order of `names`. A field that is `null` counts as absent.
pub(super) struct Fields<'a, const N: usize> {
    tool: &'static str,
    /// Path of the object in error messages. Empty if the object contains the call's arguments themselves.
    path: String,
    names: [&'static str; N],
    values: [Option<&'a str>; N],
}

/// Parses the arguments as an object. `text` is the object's JSON, or a JSON string that contains the object's JSON.
/// Empty text and `null` result in an empty object.
pub(super) fn read_object(tool: &'static str, text: &str) -> Result<Json, Mistake> {
    let no_object = || Mistake(format!("{tool} arguments must be a JSON object"));
    let parse = |text: &str| {
        let text = if text.trim().is_empty() { "{}" } else { text };
        Json::parse(text)
            .map_err(|error| Mistake(format!("{tool} arguments are not JSON: {error}")))
    };
    let mut json = parse(text)?;
    if json.as_str().starts_with('"') {
        let inner: String = serde_json::from_str(json.as_str()).map_err(|_| no_object())?;
        json = parse(&inner)?;
    }
    if json.as_str() == NULL {
        json = parse("")?;
    }
    if json.is_object() {
        Ok(json)
    } else {
        Err(no_object())
    }
}

impl<'a, const N: usize> Fields<'a, N> {
    pub(super) fn of(
        tool: &'static str,
        object: &'a Json,
        names: [&'static str; N],
    ) -> Result<Self, Mistake> {
        Self::read(tool, String::new(), object.as_str(), names)
    }

    fn read(
        tool: &'static str,
        path: String,
        object: &'a str,
        names: [&'static str; N],
    ) -> Result<Self, Mistake> {
        let mut fields = Self {
            tool,
            path,
            names,
            values: [None; N],
        };
        if !object.starts_with('{') {
            let path = fields.path.trim_end_matches('.');
            return Err(Mistake(format!("{tool} {path} must be an object")));
        }
        for (key, value) in members(object) {
            match names.iter().position(|name| is_named(key, name)) {
                Some(index) => fields.values[index] = Some(value).filter(|value| *value != NULL),
                None => return Err(fields.unknown(key)),
            }
        }
        Ok(fields)
    }

    pub(super) fn text(&self, index: usize) -> Result<Option<String>, Mistake> {
        let read = |value| serde_json::from_str(value).ok();
        self.typed(index, "a string", read)
    }

    pub(super) fn required_text(&self, index: usize) -> Result<String, Mistake> {
        self.text(index)?.ok_or_else(|| self.missing(index))
    }

    /// Returns a boolean field; `false` if absent.
    pub(super) fn flag(&self, index: usize) -> Result<bool, Mistake> {
        let read = |value| serde_json::from_str(value).ok();
        let flag = self.typed(index, "true or false", read)?;
        Ok(flag.unwrap_or(false))
    }

    pub(super) fn integer(&self, index: usize) -> Result<Option<i64>, Mistake> {
        self.typed(index, "an integer of 64 bits", integer)
    }

    pub(super) fn unsigned(&self, index: usize) -> Result<Option<u64>, Mistake> {
        let read = |value| u64::try_from(integer(value)?).ok();
        self.typed(index, "an integer from 0", read)
    }

    /// Returns the value of a lifetime field, from 1 second to 1 year.
    pub(super) fn ttl(&self, index: usize) -> Result<Option<Duration>, Mistake> {
        let seconds = self.between(index, 1..=KEY_TTL_MAX.as_secs())?;
        Ok(seconds.map(Duration::from_secs))
    }

    /// Returns an integer field. Fails if the integer is not in `range`.
    pub(super) fn between(
        &self,
        index: usize,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Mistake> {
        let expected = format!("an integer from {} to {}", range.start(), range.end());
        let read = |value| {
            let number = u64::try_from(integer(value)?).ok();
            number.filter(|number| range.contains(number))
        };
        self.typed(index, &expected, read)
    }

    /// Returns a required array as JSON text.
    pub(super) fn required_array(&self, index: usize) -> Result<&'a str, Mistake> {
        let array = self.values[index].ok_or_else(|| self.missing(index))?;
        if array.starts_with('[') {
            Ok(array)
        } else {
            Err(self.wrong(index, "an array"))
        }
    }

    /// Parses the elements of an array field lazily. An element that is not an object results in a [`Mistake`].
    pub(super) fn objects<const M: usize>(
        &self,
        index: usize,
        array: &'a str,
        names: [&'static str; M],
    ) -> impl Iterator<Item = Result<Fields<'a, M>, Mistake>> {
        let (tool, name) = (self.tool, self.names[index]);
        elements(array).enumerate().map(move |(element, text)| {
            Fields::read(tool, format!("{name}[{element}]."), text, names)
        })
    }

    pub(super) fn wrong(&self, index: usize, expected: &str) -> Mistake {
        let (tool, path, name) = (self.tool, &self.path, self.names[index]);
        Mistake(format!("{tool} {path}{name} must be {expected}"))
    }

    fn typed<T>(
        &self,
        index: usize,
        expected: &str,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<Option<T>, Mistake> {
        let typed = |value| read(value).ok_or_else(|| self.wrong(index, expected));
        self.values[index].map(typed).transpose()
    }

    fn missing(&self, index: usize) -> Mistake {
        let (tool, path, name) = (self.tool, &self.path, self.names[index]);
        Mistake(format!("{tool} {path}{name} is required"))
    }

    /// Returns the mistake for an unknown field. `key` is the field's name as quoted JSON.
    fn unknown(&self, key: &str) -> Mistake {
        // a name with a lone surrogate is omitted from the text
        let name: String = serde_json::from_str(key).unwrap_or_default();
        let (tool, path) = (self.tool, &self.path);
        let allowed = self.names.join(", ");
        let name = Excerpt(&name);
        Mistake(format!(
            "{tool} does not take {path}{name}; the fields are {allowed}"
        ))
    }
}

/// Parses an integer as JSON Schema defines it: by value, not by notation. For example, `1.0` and `1e0` are 1.
fn integer(text: &str) -> Option<i64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let zeros = usize::try_from(exponent)
        .ok()?
        .checked_sub(fraction.len())?;
    // 20 zeros are enough: a number with that many zeros already exceeds 64 bits, so `parse` rejects it
    let zeros = "0".repeat(zeros.min(20));
    format!("{whole}{fraction}{zeros}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_or_a_string_that_contains_one() {
        let read = |text| read_object("kv.read", text).map(|json| json.as_str().to_owned());

        assert_eq!(read(r#" {"key" : "a"} "#).unwrap(), r#"{"key":"a"}"#);
        assert_eq!(read(r#""{\"key\":\"a\"}""#).unwrap(), r#"{"key":"a"}"#);
        for empty in ["", " \n", "{}", "null", r#""""#, r#"" ""#, r#""null""#] {
            assert_eq!(read(empty).unwrap(), "{}", "{empty}");
        }
        for bad in ["[]", "1", "true", r#""[]""#, r#""\"{}\"""#, r#""\ud800""#] {
            let text = "kv.read arguments must be a JSON object";
            assert_eq!(read(bad).unwrap_err().0, text, "{bad}");
        }
        for bad in ["{", "{'a':1}", "key", r#""{""#, "{} {}"] {
            let text = read(bad).unwrap_err().0;
            assert!(
                text.starts_with("kv.read arguments are not JSON: "),
                "{bad}"
            );
        }
    }

    #[test]
    fn integers_are_parsed_exactly_in_any_notation() {
        for (text, number) in [
            ("0", 0),
            ("-0", 0),
            ("7", 7),
            ("1.0", 1),
            ("-1.50e1", -15),
            ("1E+2", 100),
            ("9007199254740993", 9_007_199_254_740_993),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(integer(text), Some(number), "{text}");
        }
        for text in [
            "1.5",
            "1e-1",
            "9223372036854775808",
            "1e30000",
            "1e99999",
            "1e19",
            "true",
            "\"1\"",
            "null",
            "[]",
        ] {
            assert_eq!(integer(text), None, "{text}");
        }
    }
}

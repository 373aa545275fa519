//! Query parameters of a list of items. Unknown parameters are ignored.

use super::fault::Fault;
use threadkeep_http::{decode_parameter, parameters};

/// Default and maximum number of items per page.
const LIMIT: usize = 20;
const LIMIT_MAX: usize = 100;

/// `?limit=&order=&after=`.
#[derive(Debug, PartialEq)]
pub(super) struct ListQuery {
    pub(super) limit: usize,
    /// True if the oldest items come first.
    pub(super) is_ascending: bool,
    /// Id of the item after which the page begins.
    pub(super) after: Option<String>,
}

impl ListQuery {
    pub(super) fn read(query: &str) -> Result<Self, Fault> {
        let mut read = Self {
            limit: LIMIT,
            is_ascending: false,
            after: None,
        };
        for (name, value) in parameters(query) {
            let name = decode_parameter(name).unwrap_or_default();
            let value = || {
                let value = decode_parameter(value);
                value.ok_or_else(|| Fault::wrong_value(&*name, "percent-encoded UTF-8"))
            };
            match &*name {
                "limit" => read.limit = limit(&value()?)?,
                "order" => read.is_ascending = is_ascending(&value()?)?,
                "after" => read.after = Some(value()?.into_owned()),
                _ => {}
            }
        }
        Ok(read)
    }
}

fn is_ascending(order: &str) -> Result<bool, Fault> {
    match order {
        "asc" => Ok(true),
        "desc" => Ok(false),
        _ => Err(Fault::wrong_value("order", "'asc' or 'desc'")),
    }
}

fn limit(text: &str) -> Result<usize, Fault> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::wrong_type("limit", "an integer"));
    }
    // an overflow counts as too large
    let number = digits.parse().unwrap_or(usize::MAX);
    let fault = |code, bound: &str, limit: usize| {
        let message =
            format!("Invalid 'limit': integer out of range. Expected a value {bound} {limit}.");
        Fault::new(code, "limit", message)
    };
    match number {
        0 => Err(fault("integer_below_min_value", ">=", 1)),
        _ if is_negative => Err(fault("integer_below_min_value", ">=", 1)),
        number if number > LIMIT_MAX => Err(fault("integer_above_max_value", "<=", LIMIT_MAX)),
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_parameters_are_ignored() {
        let query =
            "include%5B%5D=a&include[]=b&include=c&%FF=1&x=%zz&limit=7&order=asc&after=a%2Bb";

        let read = ListQuery::read(query).unwrap();

        let expected = ListQuery {
            limit: 7,
            is_ascending: true,
            after: Some("a+b".into()),
        };
        assert_eq!(read, expected);
        let default = ListQuery {
            limit: 20,
            is_ascending: false,
            after: None,
        };
        assert_eq!(ListQuery::read("").unwrap(), default);
    }

    #[test]
    fn a_fault_has_the_code_of_its_kind() {
        for (query, code) in [
            ("limit=0", "integer_below_min_value"),
            ("limit=-1", "integer_below_min_value"),
            ("limit=-99999999999999999999", "integer_below_min_value"),
            ("limit=101", "integer_above_max_value"),
            ("limit=99999999999999999999", "integer_above_max_value"),
            ("limit=", "invalid_type"),
            ("limit=-", "invalid_type"),
            ("limit=1.5", "invalid_type"),
            ("limit=+1", "invalid_type"),
            ("limit=%zz", "invalid_value"),
            ("order=up", "invalid_value"),
            ("after=%FF", "invalid_value"),
        ] {
            let fault = ListQuery::read(query).unwrap_err();
            assert_eq!(fault.code, code, "{query}");
            assert!(query.starts_with(&format!("{}=", fault.param)), "{query}");
        }
        assert_eq!(ListQuery::read("limit=100").unwrap().limit, 100);
    }
}

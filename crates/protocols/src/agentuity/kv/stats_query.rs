//! Parses `?limit=&offset=&sort=&direction=&name=`.

use super::super::AgentuityError;
use threadkeep_http::{decode_parameter, parameters};
use threadkeep_service::{NamespaceOrder, NamespaceRanking};

const LIMIT: usize = 100;
const LIMIT_MAX: usize = 1_000;

const UNDECODABLE: &str = "the query is not percent-encoded UTF-8";
const MALFORMED_LIMIT: &str = "limit must be a whole number from 0 to 1000";
const MALFORMED_OFFSET: &str = "offset must be a whole number from 0";
const MALFORMED_SORT: &str = "sort must be name, size, records, created or lastUsed";
const MALFORMED_DIRECTION: &str = "direction must be asc or desc";

/// Returns the order and page that `query` requests, or `None` if no known parameter is present. The default order
/// is newest first. Parameters for projects and agents have no effect, because this server has neither.
pub(super) fn read_ranking(query: &str) -> Result<Option<NamespaceRanking>, AgentuityError> {
    let mut has_parameter = false;
    let mut ranking = NamespaceRanking {
        name_part: String::new(),
        order: NamespaceOrder::Created,
        is_descending: true,
        offset: 0,
        limit: LIMIT,
    };
    for (name, value) in parameters(query) {
        let [name, value] = [decode(name)?, decode(value)?];
        match name.as_str() {
            "limit" => {
                let limit = whole_number(&value).filter(|limit| *limit <= LIMIT_MAX);
                ranking.limit = limit.ok_or(AgentuityError::Invalid(MALFORMED_LIMIT))?;
            }
            "offset" => {
                let offset = whole_number(&value);
                ranking.offset = offset.ok_or(AgentuityError::Invalid(MALFORMED_OFFSET))?;
            }
            "sort" => ranking.order = order(&value)?,
            "direction" => ranking.is_descending = is_descending(&value)?,
            "name" => ranking.name_part = value,
            "project_id" | "agent_id" | "project_name" | "agent_name" => {}
            _ => continue,
        }
        has_parameter = true;
    }
    Ok(has_parameter.then_some(ranking))
}

fn decode(text: &str) -> Result<String, AgentuityError> {
    let decoded = decode_parameter(text).ok_or(AgentuityError::Invalid(UNDECODABLE))?;
    Ok(decoded.into_owned())
}

fn whole_number(text: &str) -> Option<usize> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn order(text: &str) -> Result<NamespaceOrder, AgentuityError> {
    match text {
        "name" => Ok(NamespaceOrder::Name),
        "size" => Ok(NamespaceOrder::Bytes),
        "records" => Ok(NamespaceOrder::Entries),
        "created" => Ok(NamespaceOrder::Created),
        "lastUsed" => Ok(NamespaceOrder::LastUsed),
        _ => Err(AgentuityError::Invalid(MALFORMED_SORT)),
    }
}

fn is_descending(text: &str) -> Result<bool, AgentuityError> {
    match text {
        "asc" => Ok(false),
        "desc" => Ok(true),
        _ => Err(AgentuityError::Invalid(MALFORMED_DIRECTION)),
    }
}

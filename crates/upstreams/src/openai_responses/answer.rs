//! Whole answers.

use super::output::Output;
use crate::client::Failure;
use crate::names::Names;
use threadkeep_domain::{Json, given};
use threadkeep_responses::ModelAnswer;

/// Reads a whole answer.
///
/// # Errors
/// [`Failure`] if it is an error or unreadable.
pub(super) fn read(body: &[u8], names: &Names) -> Result<ModelAnswer, Failure> {
    let body = std::str::from_utf8(body).ok();
    let body = body.and_then(|body| Json::parse(body).ok());
    let body = body.ok_or_else(Failure::malformed)?;
    let error = given(body.as_str(), "error");
    if let Some(error) = error {
        return Err(Failure::of_error(error));
    }
    // the body is bounded itself
    let (answer, _) = Output::new(names, u64::MAX).end(body.as_str())?;
    Ok(answer)
}

#[cfg(test)]
mod tests;

use super::output::Output;
use crate::answer::read_body;
use crate::client::Failure;
use crate::names::Names;
use threadkeep_responses::ModelAnswer;

pub(super) fn read(body: &[u8], names: &Names) -> Result<ModelAnswer, Failure> {
    let body = read_body(body)?;
    // the size of the body is already limited
    let (answer, _) = Output::new(names, u64::MAX).end(body.as_str())?;
    Ok(answer)
}

#[cfg(test)]
mod tests;

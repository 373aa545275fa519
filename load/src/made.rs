use reqwest::Method;
use serde::Deserialize;

use crate::answer::{Answer, same};
use crate::ask::Ask;
use crate::http::{Failure, Http};
use crate::state::State;
use crate::thread_ref::SignedId;

#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) id: SignedId,
    pub(crate) life: String,
}

pub(crate) async fn make_thread(
    http: &mut Http<'_>,
    name: &'static str,
    state: &State,
) -> Result<Made, Failure> {
    let body = format!(r#"{{"state":{}}}"#, state.text());
    let ask = Ask::to(Method::POST, name, "/v1/threads").body(body);
    let check = |answer: &Answer| {
        #[derive(Deserialize)]
        struct Object {
            id: String,
            signed_id: String,
            version: u64,
            size_bytes: u64,
        }
        answer.expect(201)?;
        let object: Object = answer.json()?;
        same("version of a new thread", object.version, 1)?;
        same("size of a new thread", object.size_bytes, state.size())?;
        same("id of a new thread", answer.thread()?, &object.id)?;
        let tag = answer.tag()?;
        same("version of a new thread", tag.version, 1)?;
        Ok(Made {
            id: SignedId {
                id: object.id.into(),
                signed: object.signed_id.into(),
            },
            life: tag.life,
        })
    };
    let made = http.ask(&ask, check).await?;
    http.run.account.count(|tally| tally.threads += 1);
    Ok(made)
}

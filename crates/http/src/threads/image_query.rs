use crate::answer::ApiResult;
use crate::request::{Parameters, set_once};
use threadkeep_domain::{IfExists, Owner};
use threadkeep_service::ExportCursor;
use threadkeep_web::ApiError;

#[derive(Debug, Default)]
pub(crate) struct ImportQuery(pub(super) Option<IfExists>);

#[derive(Debug, Default)]
pub(crate) struct ExportQuery {
    pub(super) owner: Option<Owner>,
    pub(super) cursor: Option<ExportCursor>,
}

impl Parameters for ImportQuery {
    const NAMES: &'static [&'static str] = &["if_exists"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        let if_exists = match value {
            "replace" => Some(IfExists::Replace),
            "skip" => Some(IfExists::Skip),
            _ => None,
        };
        let malformed = "must be replace or skip, given once";
        set_once(&mut self.0, if_exists, name, malformed)
    }
}

impl Parameters for ExportQuery {
    const NAMES: &'static [&'static str] = &["owner", "cursor"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        match name {
            "owner" => {
                let malformed = "must be 1 to 256 bytes without control characters, given once";
                set_once(&mut self.owner, Owner::new(value).ok(), name, malformed)
            }
            _ if self.cursor.is_some() => set_once(&mut self.cursor, None, name, "is given twice"),
            _ => {
                let cursor = value.parse().map_err(|_| ApiError::InvalidCursor)?;
                self.cursor = Some(cursor);
                Ok(())
            }
        }
    }
}

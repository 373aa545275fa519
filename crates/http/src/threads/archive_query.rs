use crate::answer::ApiResult;
use crate::request::{Page, Parameters, set_once};
use threadkeep_domain::{Life, parse_rfc3339};

#[derive(Debug, Default)]
pub(crate) struct ArchiveListing {
    pub(super) since_ms: Option<u64>,
    pub(crate) page: Page,
}

#[derive(Debug, Default)]
pub(crate) struct LifeQuery(pub(crate) Option<Life>);

impl Parameters for ArchiveListing {
    const NAMES: &'static [&'static str] = &["since", "cursor", "limit"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        match name {
            "since" => {
                let malformed = "must be a time as in RFC 3339, given once";
                set_once(&mut self.since_ms, parse_rfc3339(value), name, malformed)
            }
            _ => self.page.take(name, value),
        }
    }
}

impl Parameters for LifeQuery {
    const NAMES: &'static [&'static str] = &["life"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        let is_hex = value.len() == 16 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
        let life = is_hex.then(|| u64::from_str_radix(value, 16).ok().map(Life));
        let malformed = "must be 16 hex digits, given once";
        set_once(&mut self.0, life.flatten(), name, malformed)
    }
}

pub(super) mod credentials;
pub(super) mod framing;
pub(super) mod head;
pub(super) mod json;
pub(super) mod path;
pub(super) mod query;

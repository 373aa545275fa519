pub(super) mod array;
pub(super) mod integer;
pub(crate) mod members;
pub(super) mod merge_patch;
pub(super) mod text;
pub(crate) mod unescaped;
pub(super) mod value;

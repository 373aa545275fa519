mod chat;
mod hot;
mod large;
mod merge;
mod tools;

pub(crate) use chat::Chat;
pub(crate) use hot::{Group, Hot};
pub(crate) use large::Large;
pub(crate) use merge::Merge;
pub(crate) use tools::Tools;

pub(super) mod change;
mod patch;
mod read;
pub(super) mod work_budget;
pub(super) mod write;

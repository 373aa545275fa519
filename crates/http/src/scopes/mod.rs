pub(super) mod call;
pub(super) mod lifecycle;
mod object;
pub(super) mod schemas;
pub(super) mod tasks;
mod tasks_body;
pub(super) mod values;
mod values_body;

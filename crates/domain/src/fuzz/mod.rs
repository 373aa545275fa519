mod histories;
mod json;
mod merge_patch;
mod windows;

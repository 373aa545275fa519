//! Fuzz targets for code that reads, merges and keeps JSON.

mod histories;
mod json;
mod merge_patch;
mod windows;

//! Fuzz targets of what a request says outside of its body.

mod cursors;
mod requests;

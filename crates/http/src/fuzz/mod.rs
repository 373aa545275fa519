//! Fuzz targets for the parts of a request outside of its body.

mod cursors;
mod requests;

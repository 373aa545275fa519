mod cursors;
mod requests;

//! Fuzz targets of what tells who has sent a request.

mod cookies;
mod proxies;

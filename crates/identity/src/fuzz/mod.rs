//! Fuzz targets of the identification of requests.

mod cookies;
mod proxies;

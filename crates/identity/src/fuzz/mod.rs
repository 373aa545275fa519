mod cookies;
mod proxies;

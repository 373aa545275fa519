//! Tests that each parameter of a Redis URL either takes effect or prevents the server from starting.

use crate::support::server::{Backend, Server};

/// Passwords and other secrets in the tested URLs. The log must not contain them.
const SECRETS: [&str; 2] = ["hidden", "s3cret"];

#[test]
fn a_url_with_a_part_without_effect_prevents_startup() {
    let parameters = "without parameters and without `#`";
    let form = "redis://user:password@host:port/0";
    let scheme = "redis://localhost:6379";
    let master = "/MASTER/0";
    let cluster = "a cluster has one database and no parameters";
    for (url, rule) in [
        ("redis://:hidden@127.0.0.1:1/0?db=1", parameters),
        ("redis://:hidden@127.0.0.1:1?protocol=resp3", parameters),
        ("redis://:hidden@127.0.0.1:1?timeout=s3cret", parameters),
        ("redis://:hidden@127.0.0.1:1?", parameters),
        ("redis://:hidden@127.0.0.1:1#insecure", parameters),
        ("rediss://:hidden@127.0.0.1:1#insecure", parameters),
        ("rediss://:hidden@127.0.0.1:1/0#", parameters),
        ("redis://:hidden#s3cret@127.0.0.1:1", parameters),
        ("redis://hidden@127.0.0.1:1", parameters),
        ("redis://hidden:@127.0.0.1:1", parameters),
        ("redis://:@127.0.0.1:1", parameters),
        ("redis://:hidden/s3cret@127.0.0.1:1", form),
        ("redis://:hidden%s3cret@127.0.0.1:1", form),
        ("redis://:hidden%FFs3cret@127.0.0.1:1", form),
        ("redis://:hidden\ts3cret@127.0.0.1:1", form),
        ("redis://:hidden@127.0.0.1:0", form),
        ("redis://:hidden@127.0.0.1:", form),
        ("redis://:hidden@127.0.0.1:65536", form),
        ("redis://:hidden@127.0.0.1,127.0.0.2", form),
        ("redis://:hidden@::1:6379", form),
        ("redis://:hidden@[::1", form),
        ("redis://:hidden@127.0.0.1:1/zero", form),
        ("redis://:hidden@127.0.0.1:1/0/1", form),
        ("unix:///nowhere?pass=hidden&database=1", parameters),
        ("unix:///nowhere?pass=hidden&pass=s3cret", parameters),
        ("unix:///nowhere?pass=hidden&db=", parameters),
        ("unix:///nowhere?user=hidden", parameters),
        ("redis+unix:///nowhere?pass=hidden#s3cret", parameters),
        ("unix://:hidden@/nowhere", form),
        ("unix:///nowhere?pass=hidden%", form),
        ("redis+sentinel://:hidden@127.0.0.1:1", master),
        ("redis+sentinel://:hidden@127.0.0.1:1/main/0/1", master),
        ("redis+sentinel://u:1/hidden@127.0.0.1", master),
        ("redis+sentinel://:hidden@127.0.0.1:0/main", form),
        ("redis+sentinel://:hidden@127.0.0.1:1/main/x", form),
        (
            "redis+sentinel://127.0.0.1:1/main?password=hidden",
            parameters,
        ),
        (
            "redis+sentinel://127.0.0.1:1/main?sentinel_username=hidden",
            parameters,
        ),
        (
            "redis+sentinel://127.0.0.1:1/main?sentinel_password=hidden&sentinel_password=s3cret",
            parameters,
        ),
        (
            "redis+sentinel://127.0.0.1:1/main?sentinel_password=",
            parameters,
        ),
        ("redis+cluster://:hidden@127.0.0.1:1/1", cluster),
        (
            "redis+cluster://:hidden@127.0.0.1:1?replicas=s3cret",
            cluster,
        ),
        ("redis+cluster://:hidden@127.0.0.1:1#insecure", parameters),
        ("redis+cluster://:hidden@127.0.0.1:1,,127.0.0.2:1", form),
        ("valkey://:hidden@127.0.0.1:1", scheme),
        ("127.0.0.1:1?pass=hidden", scheme),
    ] {
        let (status, log) = Server::builder(Backend::Memory).redis(url).start_refused();

        assert!(!status.success(), "{url}: {log}");
        assert!(log.contains("`redis_url`"), "{url}: {log}");
        assert!(log.contains(rule), "{url}: {log}");
        for secret in SECRETS {
            assert!(!log.contains(secret), "{url}: {log}");
        }
    }
}

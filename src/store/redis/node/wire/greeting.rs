//! What a connection begins with.

use redis::{Pipeline, RedisConnectionInfo, RedisError};

use super::Wire;

/// Says who connects, and takes the database.
pub(super) async fn greet(wire: &Wire, settings: &RedisConnectionInfo) -> Result<(), RedisError> {
    let mut needed = Pipeline::new();
    needed.cmd("HELLO").arg(3);
    if let Some(password) = settings.password() {
        let user = settings.username().unwrap_or("default");
        needed.arg("AUTH").arg(user).arg(password);
    }
    if settings.db() != 0 {
        needed.cmd("SELECT").arg(settings.db());
    }
    let count = needed.len();
    // what older servers do not know: it is for who looks at the list of clients
    for (name, value) in [
        ("LIB-NAME", "threadkeep"),
        ("LIB-VER", env!("CARGO_PKG_VERSION")),
    ] {
        needed.cmd("CLIENT").arg("SETINFO").arg(name).arg(value);
    }
    for reply in wire.call(&needed).await?.into_iter().take(count) {
        reply.extract_error()?;
    }
    Ok(())
}

use redis::{ErrorKind, RedisConnectionInfo, RedisError};

use super::Multiplexer;
use crate::transport::command;

pub(super) async fn greet(
    wire: &Multiplexer,
    settings: &RedisConnectionInfo,
) -> Result<(), RedisError> {
    let mut hello = command("HELLO");
    hello.arg(3);
    if let Some(password) = settings.password() {
        let user = settings.username().unwrap_or("default");
        hello.arg("AUTH").arg(user).arg(password);
    }
    let hello = [hello];
    let mut rest = Vec::new();
    if settings.db() != 0 {
        let mut select = command("SELECT");
        select.arg(settings.db());
        rest.push(select);
    }
    let needed = rest.len();
    // older servers reject these commands, which only affect the client list
    for (name, value) in [
        ("LIB-NAME", "threadkeep"),
        ("LIB-VER", env!("CARGO_PKG_VERSION")),
    ] {
        let mut client = command("CLIENT");
        client.arg("SETINFO").arg(name).arg(value);
        rest.push(client);
    }
    // checks the reply to HELLO first, because it contains the error if the server has too many clients
    let (hello, rest) = tokio::join!(wire.call(&hello), wire.call(&rest));
    for reply in hello? {
        reply.extract_error().map_err(without_password)?;
    }
    for reply in rest?.into_iter().take(needed) {
        reply.extract_error()?;
    }
    Ok(())
}

/// Replaces an error that may contain the password: a server that does not support HELLO repeats the arguments.
pub(in crate::transport) fn without_password(error: RedisError) -> RedisError {
    match error.detail() {
        Some(detail) if detail.starts_with("unknown command") => (
            ErrorKind::RESP3NotSupported,
            "this server does not know HELLO 3",
        )
            .into(),
        _ => error,
    }
}

//! The floor: an actix handler that answers 200 bytes and does nothing else.

use std::env;
use std::io;
use std::process::Command;
use std::time::Duration;

use actix_web::rt::System;
use actix_web::{App, HttpResponse, HttpServer, web};

use super::process::{Process, free_address};

/// First argument of a process that is to be the floor.
pub(super) const MODE: &str = "floor";

static BODY: [u8; 200] = [b'x'; 200];

/// Serves, with the settings of the product's server.
pub(super) fn serve(address: &str, workers: usize) -> io::Result<()> {
    let server = HttpServer::new(|| App::new().route("/", web::get().to(answer)))
        .keep_alive(Duration::from_secs(75))
        .tcp_nodelay(true)
        .workers(workers)
        .bind(address)?;
    System::new().block_on(server.run())
}

async fn answer() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/plain")
        .body(&BODY[..])
}

/// Starts this program again, as the floor.
pub(super) fn start(workers: u64) -> io::Result<Process> {
    let address = free_address()?;
    let mut command = Command::new(env::current_exe()?);
    command.args([MODE, &address.to_string(), &workers.to_string()]);
    Process::start(command, address, "floor")
}

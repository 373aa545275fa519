//! The floor (lower bound) for all measurements: an actix handler that only returns bytes from memory.

use std::env;
use std::io;
use std::process::Command;
use std::time::Duration;

use actix_web::rt::System;
use actix_web::{App, HttpResponse, HttpServer, web};

use super::process::{Process, free_address};
use super::request::request;

pub(super) const MODE: &str = "floor";

static SMALL: [u8; 200] = [b'x'; 200];
static LARGE: [u8; 256 << 10] = [b'x'; 256 << 10];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// 200 bytes.
    Small,
    /// 256 KiB.
    Large,
}

impl Answer {
    pub(super) fn request(self) -> Vec<u8> {
        let line = match self {
            Self::Small => "GET /",
            Self::Large => "GET /large",
        };
        request(line, None, "")
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Small => "actix handler, 200 bytes",
            Self::Large => "actix handler, 256 KiB",
        }
    }
}

pub(super) fn serve(address: &str, workers: usize) -> io::Result<()> {
    let app = || {
        App::new()
            .route("/", web::get().to(async || answer(&SMALL)))
            .route("/large", web::get().to(async || answer(&LARGE)))
    };
    let server = HttpServer::new(app)
        .keep_alive(Duration::from_secs(75))
        .tcp_nodelay(true)
        .workers(workers)
        .bind(address)?;
    System::new().block_on(server.run())
}

fn answer(body: &'static [u8]) -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain").body(body)
}

pub(super) fn start(workers: u64) -> io::Result<Process> {
    let address = free_address()?;
    let mut command = Command::new(env::current_exe()?);
    command.args([MODE, &address.to_string(), &workers.to_string()]);
    Process::start(command, address, "floor")
}

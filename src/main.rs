//! The program; what it does is in the library.

use std::env;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    threadkeep::cli::run(env::args_os(), env::vars_os())
}

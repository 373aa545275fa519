//! The program, a thin shell around the library.

use std::env;
use std::process::ExitCode;

/// Its background threads return freed memory to the system also while the server is idle. Allocators whose
/// threads each collect their own garbage keep that of a peak for as long as those threads have little to do.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    // They take memory for no speed, and a kernel that refuses this serves as well.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    threadkeep::cli::run(env::args_os(), env::vars_os())
}

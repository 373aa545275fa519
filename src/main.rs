use std::env;
use std::process::ExitCode;

/// The server uses jemalloc, whose background threads return freed memory to the system even while the server is idle.
/// Other allocators with per-thread caches keep the memory of a load peak.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    // Huge pages would use more memory without making the server faster. Errors are ignored, because the server also
    // works with huge pages.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    threadkeep::cli::run(env::args_os(), env::vars_os())
}

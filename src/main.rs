use std::env;
use std::process::ExitCode;

/// jemalloc's background threads return freed memory to the system even while the server is idle. Allocators with a garbage
/// list per thread keep the memory of a peak as long as their threads are idle.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    // Huge pages would cost memory and gain no speed. A kernel that refuses this does no harm.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    threadkeep::cli::run(env::args_os(), env::vars_os())
}

use std::env;
use std::ffi::OsString;
use std::path::{self, Path, PathBuf};
use std::sync::LazyLock;

pub const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns the path of the program under test: the value of `THREADKEEP_BIN`, or else the program that Cargo built with
/// the tests.
#[must_use]
pub fn program() -> OsString {
    if let Some(given) = env::var_os("THREADKEEP_BIN") {
        return path::absolute(given).unwrap().into();
    }
    let tests = env::current_exe().unwrap();
    // the test program is in target/debug/deps
    let folder = tests.ancestors().nth(2).unwrap();
    folder.join("threadkeep").into()
}

#[must_use]
pub fn scratch() -> &'static Path {
    static SCRATCH: LazyLock<PathBuf> = LazyLock::new(|| {
        let scratch = Path::new(PROJECT).join("target/tmp");
        std::fs::create_dir_all(&scratch).unwrap();
        scratch.canonicalize().unwrap()
    });
    &SCRATCH
}

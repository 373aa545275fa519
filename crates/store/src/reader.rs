//! Readers of threads.

use threadkeep_domain::Access;

/// The reader of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    /// The threads that the caller may use.
    pub access: Access,
    /// Whether a read counts as a use of the thread, which moves its end.
    pub touch: bool,
}

impl Reader {
    /// A reader of all threads, whose reads are uses.
    pub const ALL: Self = Self {
        access: Access::All,
        touch: true,
    };
}

impl From<Access> for Reader {
    /// The caller as a reader whose reads are uses.
    fn from(access: Access) -> Self {
        Self {
            access,
            touch: true,
        }
    }
}

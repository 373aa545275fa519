use threadkeep_domain::Access;

/// The reader of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    /// The caller's access to threads.
    pub access: Access,
    /// True if a read extends the lifetime of the thread.
    pub touch: bool,
}

impl Reader {
    /// Reads all threads, and extends their lifetimes.
    pub const ALL: Self = Self {
        access: Access::All,
        touch: true,
    };
}

impl From<Access> for Reader {
    fn from(access: Access) -> Self {
        Self {
            access,
            touch: true,
        }
    }
}

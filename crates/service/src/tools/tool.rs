use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tool {
    KvWrite,
    KvRead,
    KvList,
    KvDelete,
    KvIncrement,
    TasksWrite,
    TasksRead,
    TasksUpdate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown tool")]
pub struct UnknownTool;

impl Tool {
    /// In the order in which models see the tools.
    pub const ALL: [Self; 8] = [
        Self::KvWrite,
        Self::KvRead,
        Self::KvList,
        Self::KvDelete,
        Self::KvIncrement,
        Self::TasksWrite,
        Self::TasksRead,
        Self::TasksUpdate,
    ];

    /// Returns the tool's name for models, which has an underscore because model APIs reject dots.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.names().0
    }

    /// Returns the tool's name in messages. Requests may also use this name.
    #[must_use]
    pub fn dotted(self) -> &'static str {
        self.names().1
    }

    #[must_use]
    pub fn only_reads(self) -> bool {
        matches!(self, Self::KvRead | Self::KvList | Self::TasksRead)
    }

    /// Returns whether a call may replace or delete data.
    #[must_use]
    pub fn overwrites(self) -> bool {
        !self.only_reads() && self != Self::KvIncrement
    }

    /// Returns whether repeating a call immediately changes nothing.
    #[must_use]
    pub fn is_idempotent(self) -> bool {
        self != Self::KvIncrement
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::KvWrite => ("kv_write", "kv.write"),
            Self::KvRead => ("kv_read", "kv.read"),
            Self::KvList => ("kv_list", "kv.list"),
            Self::KvDelete => ("kv_delete", "kv.delete"),
            Self::KvIncrement => ("kv_increment", "kv.increment"),
            Self::TasksWrite => ("tasks_write", "tasks.write"),
            Self::TasksRead => ("tasks_read", "tasks.read"),
            Self::TasksUpdate => ("tasks_update", "tasks.update"),
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Tool {
    type Err = UnknownTool;

    /// Parses a name with an underscore or a dot, such as `kv_read` or `kv.read`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_named = |tool: &Self| {
            let (name, dotted) = tool.names();
            text == name || text == dotted
        };
        Self::ALL.into_iter().find(is_named).ok_or(UnknownTool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_spellings_of_a_name_are_parsed() {
        for tool in Tool::ALL {
            assert_eq!(tool.as_str().parse(), Ok(tool));
            assert_eq!(tool.dotted().parse(), Ok(tool));
            assert_eq!(tool.dotted().replace('.', "_"), tool.as_str());
        }
        for bad in ["", "kv", "kv-write", "KV_WRITE", "kv_write ", "kv_.write"] {
            assert_eq!(bad.parse::<Tool>(), Err(UnknownTool), "{bad}");
        }
    }
}

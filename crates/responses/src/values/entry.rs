use serde::{Deserialize, Serialize};

use crate::values::model::ModelAnswer;
use crate::values::stored::Stored;
use threadkeep_domain::{Failure, Json};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry {
    Answer {
        answer: ModelAnswer,
        #[serde(flatten)]
        numbers: ItemNumbers,
    },
    /// The server has run the next call of the last answer.
    Call {
        /// The call and its result.
        item: Json,
        index: u64,
    },
    /// The response has failed, and may be resumed.
    Failed(Failure),
}

/// Indexes of the items of an answer, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ItemNumbers {
    /// Indexes of messages, other items, and calls that the client runs.
    #[serde(rename = "indexes")]
    pub(crate) items: Vec<u64>,
    /// Indexes of calls that the server runs. Empty in entries from older versions, which assigned each index when the
    /// call ran.
    #[serde(default)]
    pub(crate) calls: Vec<u64>,
}

impl Stored for Entry {
    const NAME: &'static str = "an entry of a response";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_older_versions_are_read() {
        let answer = r#""answer":{"parts":[],"finish":"Done","usage":{"input_tokens":0,"cached_tokens":0,"output_tokens":0,"reasoning_tokens":0}}"#;
        let older = format!(r#"{{"answer":{{{answer},"indexes":[3]}}}}"#);

        let Entry::Answer { numbers, .. } = Entry::read(older.as_bytes()).unwrap() else {
            panic!("an answer");
        };

        let expected = ItemNumbers {
            items: vec![3],
            calls: Vec::new(),
        };
        assert_eq!(numbers, expected);
        // older versions can read this form
        let ours = format!(r#"{{"answer":{{{answer},"indexes":[3],"calls":[4]}}}}"#);
        let read = Entry::read(ours.as_bytes()).unwrap();
        assert_eq!(read.to_bytes(), ours.as_bytes());
    }
}

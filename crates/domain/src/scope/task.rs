use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{TASKS_MAX, TASKS_MAX_BYTES, TaskError};
use crate::{Heap, heap};

const ID_MAX_BYTES: usize = 64;

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not started.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
}

/// A task.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The id within its list: 1 to 64 visible ASCII characters.
    pub id: String,
    /// The text of the task; not empty.
    pub content: String,
    /// The status.
    pub status: TaskStatus,
    /// The text to show while the task is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
}

impl Task {
    /// Returns whether the task is completed.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.status == TaskStatus::Completed
    }
}

/// A new task. Without an id, the list assigns one.
#[derive(Clone, PartialEq, Eq)]
pub struct NewTask {
    /// See [`Task::id`].
    pub id: Option<String>,
    /// See [`Task::content`].
    pub content: String,
    /// See [`Task::status`].
    pub status: TaskStatus,
    /// See [`Task::active_form`].
    pub active_form: Option<String>,
}

/// Identifies a task in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskRef {
    /// By id.
    Id(String),
    /// By index, from 0.
    Index(usize),
}

/// Changes to one task. `None` leaves a field unchanged.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct TaskChange {
    /// The new status.
    pub status: Option<TaskStatus>,
    /// The new content.
    pub content: Option<String>,
    /// The new active form.
    pub active_form: Option<String>,
}

/// An ordered list of up to 1,000 tasks. As JSON, the list may have up to 131,072 bytes.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct TaskList(Vec<Task>);

impl Heap for TaskList {
    fn heap_bytes(&self) -> u64 {
        let texts = |task: &Task| {
            let active_form = task.active_form.as_ref();
            let texts = [Some(&task.id), Some(&task.content), active_form];
            let blocks = texts.into_iter().flatten();
            blocks.map(|text| heap::block(text.capacity())).sum::<u64>()
        };
        heap::array::<Task>(self.0.capacity()) + self.0.iter().map(texts).sum::<u64>()
    }
}

impl TaskStatus {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Pending, Self::InProgress, Self::Completed];

    /// Returns the name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

impl FromStr for TaskStatus {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let status = Self::ALL.into_iter().find(|status| status.as_str() == text);
        status.ok_or(())
    }
}

impl TaskList {
    /// Creates a list. Tasks without an id get the smallest unused numbers as ids.
    pub fn new(tasks: Vec<NewTask>) -> Result<Self, TaskError> {
        let explicit: HashSet<String> = tasks.iter().filter_map(|task| task.id.clone()).collect();
        let mut free = (1_u64..).map(|number| number.to_string());
        let tasks = tasks.into_iter().map(|task| Task {
            id: task.id.unwrap_or_else(|| {
                let free = free.find(|id| !explicit.contains(id));
                free.expect("numbers do not end")
            }),
            content: task.content,
            status: task.status,
            active_form: task.active_form,
        });
        Self(tasks.collect()).checked()
    }

    /// Returns the tasks in order.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.0
    }

    /// Returns whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the list with one task changed.
    pub fn update(&self, which: &TaskRef, change: &TaskChange) -> Result<Self, TaskError> {
        let mut tasks = self.0.clone();
        let task = match which {
            TaskRef::Id(id) => tasks.iter_mut().find(|task| task.id == *id),
            TaskRef::Index(index) => tasks.get_mut(*index),
        };
        let task = task.ok_or(TaskError::NotFound)?;
        if let Some(status) = change.status {
            task.status = status;
        }
        if let Some(content) = &change.content {
            task.content.clone_from(content);
        }
        if let Some(active_form) = &change.active_form {
            task.active_form = Some(active_form.clone());
        }
        Self(tasks).checked()
    }

    /// Checks that `new` contains every unfinished task. Tasks match if they have the same id or the same content.
    pub fn check_keeps_unfinished(&self, new: &[NewTask]) -> Result<(), TaskError> {
        let ids: HashSet<_> = new.iter().filter_map(|new| new.id.as_deref()).collect();
        let mut contents: HashMap<&str, usize> = HashMap::new();
        for new in new {
            *contents.entry(&new.content).or_default() += 1;
        }
        let mut is_kept = |task: &Task| {
            if ids.contains(task.id.as_str()) {
                return true;
            }
            match contents.get_mut(task.content.as_str()) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    true
                }
                _ => false,
            }
        };
        let unfinished = self.0.iter().filter(|task| !task.is_completed());
        match unfinished.filter(|task| !is_kept(task)).count() {
            0 => Ok(()),
            count => Err(TaskError::WouldDropUnfinished { count }),
        }
    }

    /// Returns the list as a compact JSON array of objects.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(&self.0).expect("tasks are text")
    }

    /// Parses text that [`Self::to_json`] returned. Returns `None` if the text is invalid.
    pub fn from_stored(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    fn checked(self) -> Result<Self, TaskError> {
        if self.0.len() > TASKS_MAX {
            return Err(TaskError::TooMany { limit: TASKS_MAX });
        }
        let mut ids = HashSet::new();
        for task in &self.0 {
            let is_visible = task.id.bytes().all(|byte| byte.is_ascii_graphic());
            if task.id.is_empty() || task.id.len() > ID_MAX_BYTES || !is_visible {
                return Err(TaskError::Id);
            }
            if !ids.insert(&task.id) {
                return Err(TaskError::SameId {
                    id: task.id.clone(),
                });
            }
            if task.content.is_empty() {
                return Err(TaskError::NoContent);
            }
        }
        if self.to_json().len() > TASKS_MAX_BYTES {
            return Err(TaskError::TooLarge {
                limit_bytes: TASKS_MAX_BYTES,
            });
        }
        Ok(self)
    }
}

/// Keeps the text of tasks out of logs.
impl fmt::Debug for TaskList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskList({} tasks)", self.0.len())
    }
}

macro_rules! opaque {
    ($($type:ty),*) => {$(
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($type)).finish_non_exhaustive()
            }
        }
    )*};
}
opaque!(Task, NewTask, TaskChange);

#[cfg(test)]
mod tests {
    use super::*;

    fn task(content: &str, status: TaskStatus) -> NewTask {
        NewTask {
            id: None,
            content: content.into(),
            status,
            active_form: None,
        }
    }

    fn with_id(id: &str, content: &str) -> NewTask {
        NewTask {
            id: Some(id.into()),
            ..task(content, TaskStatus::Pending)
        }
    }

    #[test]
    fn tasks_without_an_id_get_the_smallest_unused_number() {
        let tasks = vec![
            task("a", TaskStatus::Pending),
            with_id("1", "b"),
            task("c", TaskStatus::Completed),
        ];

        let list = TaskList::new(tasks).unwrap();

        let ids: Vec<_> = list.tasks().iter().map(|task| task.id.as_str()).collect();
        assert_eq!(ids, ["2", "1", "3"]);
        assert_eq!(TaskList::from_stored(&list.to_json()), Some(list));
    }

    #[test]
    fn a_task_is_changed_by_id_or_index() {
        let list = TaskList::new(vec![task("a", TaskStatus::Pending), with_id("x", "b")]).unwrap();
        let done = TaskChange {
            status: Some(TaskStatus::Completed),
            ..TaskChange::default()
        };

        let by_id = list.update(&TaskRef::Id("x".into()), &done).unwrap();
        assert_eq!(by_id.tasks()[1].status, TaskStatus::Completed);
        let by_index = list.update(&TaskRef::Index(0), &done).unwrap();
        assert_eq!(by_index.tasks()[0].status, TaskStatus::Completed);
        let none = list.update(&TaskRef::Index(2), &done);
        assert_eq!(none, Err(TaskError::NotFound));
        let none = list.update(&TaskRef::Id("y".into()), &done);
        assert_eq!(none, Err(TaskError::NotFound));
    }

    #[test]
    fn unfinished_tasks_cannot_be_omitted_or_merged() {
        use TaskStatus::{Completed, InProgress, Pending};
        let list = TaskList::new(vec![
            task("a", Pending),
            task("a", InProgress),
            task("done", Completed),
            with_id("x", "b"),
        ])
        .unwrap();
        let check = |new: Vec<NewTask>| list.check_keeps_unfinished(&new);

        let kept = vec![task("a", Completed), task("a", Pending), with_id("x", "B")];
        assert_eq!(check(kept), Ok(()));
        let merged = vec![task("a", Pending), with_id("x", "b")];
        assert_eq!(
            check(merged),
            Err(TaskError::WouldDropUnfinished { count: 1 })
        );
        assert_eq!(
            check(vec![]),
            Err(TaskError::WouldDropUnfinished { count: 3 })
        );
    }

    #[test]
    fn lists_are_bounded() {
        let many = |count| vec![task("a", TaskStatus::Pending); count];
        assert!(TaskList::new(many(1_000)).is_ok());
        assert_eq!(
            TaskList::new(many(1_001)),
            Err(TaskError::TooMany { limit: 1_000 })
        );
        let long = vec![task(&"x".repeat(131_072), TaskStatus::Pending)];
        assert_eq!(
            TaskList::new(long),
            Err(TaskError::TooLarge {
                limit_bytes: 131_072
            })
        );
        assert_eq!(
            TaskList::new(vec![task("", TaskStatus::Pending)]),
            Err(TaskError::NoContent)
        );
        assert_eq!(
            TaskList::new(vec![with_id("1", "a"), with_id("1", "b")]),
            Err(TaskError::SameId { id: "1".into() })
        );
        assert_eq!(TaskList::new(vec![with_id("a b", "a")]), Err(TaskError::Id));
    }
}

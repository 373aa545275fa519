use super::schemas::{NewTaskBody, UpdateTask};
use crate::answer::ApiResult;
use crate::request::{Whole, invalid};
use threadkeep_domain::scope::{NewTask, TaskChange, TaskRef};

impl From<NewTaskBody> for NewTask {
    fn from(task: NewTaskBody) -> Self {
        Self {
            id: task.id,
            content: task.content,
            status: task.status,
            active_form: task.active_form,
        }
    }
}

impl UpdateTask {
    pub(super) fn read(self) -> ApiResult<(TaskRef, TaskChange)> {
        let task = match (self.id, self.index) {
            (Some(id), None) => TaskRef::Id(id),
            (None, Some(Whole(index))) => {
                TaskRef::Index(usize::try_from(index).unwrap_or(usize::MAX))
            }
            _ => return Err(invalid("Give either `id` or `index`")),
        };
        let change = TaskChange {
            status: self.status,
            content: self.content,
            active_form: self.active_form,
        };
        if change == TaskChange::default() {
            return Err(invalid("Give `status`, `content` or `active_form`"));
        }
        Ok((task, change))
    }
}

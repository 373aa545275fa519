use super::arguments::{Fields, read_object};
use super::mistake::{Mistake, of_part};
use super::tool::Tool;
use threadkeep_domain::scope::{
    KeyRule, KvOperation, NewTask, ScopeKey, ScopeValue, TASKS_MAX, TaskChange, TaskError, TaskRef,
    TaskStatus,
};
use threadkeep_domain::{Json, elements};

pub(super) struct Request {
    pub(super) action: Action,
    pub(super) if_version: Option<u64>,
    pub(super) with_version: bool,
}

pub(super) enum Action {
    Set {
        set: KvOperation,
        /// True if the result reports whether the value was written.
        reports_written: bool,
    },
    Get(ScopeKey),
    List,
    Delete(KvOperation),
    Increment(KvOperation),
    WriteTasks {
        tasks: Vec<NewTask>,
        keep_unfinished: bool,
    },
    ReadTasks,
    UpdateTask {
        which: TaskRef,
        change: TaskChange,
    },
}

impl Request {
    pub(super) fn read(tool: Tool, arguments: &str) -> Result<Self, Mistake> {
        let object = &read_object(tool.dotted(), arguments)?;
        match tool {
            Tool::KvWrite => kv_write(tool, object),
            Tool::KvRead => kv_read(tool, object),
            Tool::KvList => {
                let with_version = read_version_only(tool, object)?;
                Ok(Self::of_read(Action::List, with_version))
            }
            Tool::KvDelete => kv_delete(tool, object),
            Tool::KvIncrement => kv_increment(tool, object),
            Tool::TasksWrite => tasks_write(tool, object),
            Tool::TasksRead => {
                let with_version = read_version_only(tool, object)?;
                Ok(Self::of_read(Action::ReadTasks, with_version))
            }
            Tool::TasksUpdate => tasks_update(tool, object),
        }
    }

    fn of_read(action: Action, with_version: bool) -> Self {
        Self {
            action,
            if_version: None,
            with_version,
        }
    }

    /// Creates the request for a write. The result includes the new version only if `if_version` is set.
    fn of_write(action: Action, if_version: Option<u64>) -> Self {
        Self {
            action,
            if_version,
            with_version: if_version.is_some(),
        }
    }
}

fn kv_write(tool: Tool, object: &Json) -> Result<Request, Mistake> {
    let names = ["key", "value", "ttl_seconds", "if_absent", "if_version"];
    let fields = Fields::of(tool.dotted(), object, names)?;
    let if_absent = fields.flag(3)?;
    let key = key(tool, fields.required_text(0)?)?;
    let value = ScopeValue::new(fields.required_text(1)?).map_err(|error| of_part(tool, error))?;
    let set = KvOperation::Set {
        key,
        value,
        ttl: fields.ttl(2)?,
        if_absent,
    };
    let action = Action::Set {
        set,
        reports_written: if_absent,
    };
    Ok(Request::of_write(action, fields.unsigned(4)?))
}

fn kv_read(tool: Tool, object: &Json) -> Result<Request, Mistake> {
    let fields = Fields::of(tool.dotted(), object, ["key", "with_version"])?;
    let action = Action::Get(key(tool, fields.required_text(0)?)?);
    Ok(Request::of_read(action, fields.flag(1)?))
}

fn kv_delete(tool: Tool, object: &Json) -> Result<Request, Mistake> {
    let fields = Fields::of(tool.dotted(), object, ["key", "if_version"])?;
    let key = key(tool, fields.required_text(0)?)?;
    let action = Action::Delete(KvOperation::Delete { key });
    Ok(Request::of_write(action, fields.unsigned(1)?))
}

fn kv_increment(tool: Tool, object: &Json) -> Result<Request, Mistake> {
    let fields = Fields::of(tool.dotted(), object, ["key", "by", "if_version"])?;
    let key = key(tool, fields.required_text(0)?)?;
    let by = fields.integer(1)?.unwrap_or(1);
    let action = Action::Increment(KvOperation::Increment { key, by });
    Ok(Request::of_write(action, fields.unsigned(2)?))
}

fn tasks_write(tool: Tool, object: &Json) -> Result<Request, Mistake> {
    let fields = Fields::of(
        tool.dotted(),
        object,
        ["tasks", "keep_unfinished", "if_version"],
    )?;
    let list = fields.required_array(0)?;
    // counts the tasks before parsing them, because parsed tasks need fifty times as much memory as their JSON
    if elements(list).nth(TASKS_MAX).is_some() {
        let too_many = TaskError::TooMany { limit: TASKS_MAX };
        return Err(Mistake(too_many.to_string()));
    }
    let tasks = fields.objects(0, list, ["id", "content", "status", "active_form"]);
    let read = |task: Result<Fields<'_, 4>, Mistake>| {
        let task = task?;
        Ok(NewTask {
            id: task.text(0)?,
            content: task.required_text(1)?,
            status: status(&task, 2, &task.required_text(2)?)?,
            active_form: task.text(3)?,
        })
    };
    let action = Action::WriteTasks {
        tasks: tasks.map(read).collect::<Result<_, Mistake>>()?,
        keep_unfinished: fields.flag(1)?,
    };
    Ok(Request::of_write(action, fields.unsigned(2)?))
}

fn tasks_update(tool: Tool, object: &Json) -> Result<Request, Mistake> {
    let names = [
        "id",
        "index",
        "status",
        "content",
        "active_form",
        "if_version",
    ];
    let fields = Fields::of(tool.dotted(), object, names)?;
    let index = fields.unsigned(1)?;
    let which = match (fields.text(0)?, index) {
        (Some(id), None) => TaskRef::Id(id),
        (None, Some(index)) => TaskRef::Index(usize::try_from(index).unwrap_or(usize::MAX)),
        _ => {
            let text = format!("{} requires either id or index", tool.dotted());
            return Err(Mistake(text));
        }
    };
    let read_status = |text: String| status(&fields, 2, &text);
    let change = TaskChange {
        status: fields.text(2)?.map(read_status).transpose()?,
        content: fields.text(3)?,
        active_form: fields.text(4)?,
    };
    if change == TaskChange::default() {
        let text = format!("{} requires status, content or active_form", tool.dotted());
        return Err(Mistake(text));
    }
    let action = Action::UpdateTask { which, change };
    Ok(Request::of_write(action, fields.unsigned(5)?))
}

fn read_version_only(tool: Tool, object: &Json) -> Result<bool, Mistake> {
    Fields::of(tool.dotted(), object, ["with_version"])?.flag(0)
}

/// Parses a key. Keys from models must be namespaced, even in scopes that allow other keys.
fn key(tool: Tool, text: String) -> Result<ScopeKey, Mistake> {
    ScopeKey::new(text, KeyRule::Namespaced).map_err(|error| of_part(tool, error))
}

fn status<const N: usize>(
    fields: &Fields<'_, N>,
    index: usize,
    text: &str,
) -> Result<TaskStatus, Mistake> {
    text.parse()
        .map_err(|()| fields.wrong(index, "pending, in_progress or completed"))
}

use serde_json::{Map, Value, json};
use tokio::task::yield_now;

use super::mistake::{Failure, Mistake, of_no_context, sort};
use super::request::{Action, Request};
use super::scratch::scratch;
use super::tool::Tool;
use crate::{ScopeService, ServiceError, WriteOptions};
use threadkeep_domain::TurnToken;
use threadkeep_domain::scope::{KvAnswer, KvOperation, Scope, ScopeId, ScopeKey, ScopeWritten};
use threadkeep_domain::{IdempotencyKey, Precondition};
use threadkeep_store::{ScopeParts, ScopeView};

/// Maximum total size of the results of a list of calls, in bytes of JSON. Without this limit, a 10 kB message of calls
/// that all read one value could return 29 MB, far more than model providers accept.
const RESULTS_MAX_BYTES: usize = 2 * 1_048_576;

#[derive(Debug, Clone)]
pub struct Toolbox {
    scopes: ScopeService,
}

#[derive(Debug, Clone)]
pub struct Call {
    pub tool: Tool,
    /// JSON text: an object, a string that contains an object, or empty text.
    pub arguments: String,
    /// Idempotency key of a write.
    pub idempotency: Option<IdempotencyKey>,
    pub turn: Option<TurnToken>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A JSON object.
    Result(Value),
    /// Describes a mistake in the call. Nothing was changed.
    Mistake(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    pub outcome: Outcome,
    /// True if this is the remembered answer to an earlier call with the same idempotency key.
    pub replayed: bool,
}

impl Outcome {
    /// Returns the JSON text for the model: the result, or `{"error":"..."}`.
    #[must_use]
    pub fn to_json(&self) -> String {
        match self {
            Self::Result(result) => result.to_string(),
            Self::Mistake(text) => json!({"error": text}).to_string(),
        }
    }
}

impl Call {
    /// Creates a call without an idempotency key.
    #[must_use]
    pub fn new(tool: Tool, arguments: impl Into<String>) -> Self {
        Self {
            tool,
            arguments: arguments.into(),
            idempotency: None,
            turn: None,
        }
    }
}

impl Toolbox {
    #[must_use]
    pub fn new(scopes: ScopeService) -> Self {
        Self { scopes }
    }

    /// Runs a call. Writes to the scope `request` are not stored. Returns an error only for a problem that the model
    /// did not cause: the scope does not exist, the scope rejects writes, or the store fails.
    pub async fn call(&self, scope: &Scope, call: Call) -> Result<Outcome, ServiceError> {
        let mut answers = self.call_all(scope, &[call]).await?;
        let answer = answers.pop().expect("one call has one answer");
        Ok(answer.outcome)
    }

    /// Runs a call that is the only one in its request. A write to the scope `request` is a mistake, because no other
    /// call could read the written data.
    pub async fn call_alone(&self, scope: &Scope, call: Call) -> Result<Outcome, ServiceError> {
        if matches!(scope, Scope::Request) && !call.tool.only_reads() {
            let Mistake(text) = of_no_context(call.tool);
            return Ok(Outcome::Mistake(text));
        }
        self.call(scope, call).await
    }

    /// Runs calls in order. A mistake in one call does not stop the later calls.
    ///
    /// In the scope `request`, each call sees the writes of earlier calls, but nothing is stored. A read that makes the
    /// results exceed 2 MiB is a mistake. If a call fails with an error, the earlier calls have already taken effect.
    pub async fn call_all(
        &self,
        scope: &Scope,
        calls: &[Call],
    ) -> Result<Vec<Answered>, ServiceError> {
        let (scopes, scope) = match scope {
            Scope::Kept(scope) => (self.scopes.clone(), scope.clone()),
            Scope::Request => scratch(&self.scopes),
        };
        let mut answers = Vec::with_capacity(calls.len());
        let mut remaining_bytes = RESULTS_MAX_BYTES;
        for call in calls {
            let mut answered = match run(&scopes, &scope, call).await {
                Ok(answered) => answered,
                Err(Failure::Mistake(Mistake(text))) => Answered {
                    outcome: Outcome::Mistake(text),
                    replayed: false,
                },
                Err(Failure::Error(error)) => return Err(error),
            };
            let bytes = answered.outcome.to_json().len();
            match remaining_bytes.checked_sub(bytes) {
                Some(rest) => remaining_bytes = rest,
                // a write has already taken effect, and its result is small
                None if call.tool.only_reads() => answered.outcome = results_too_large(call.tool),
                None => {}
            }
            answers.push(answered);
            // yields explicitly, because calls to an embedded store never yield, so 128 calls with task lists of 128
            // KiB each would block the worker while it processes 16 MiB
            yield_now().await;
        }
        Ok(answers)
    }
}

fn results_too_large(tool: Tool) -> Outcome {
    Outcome::Mistake(format!(
        "{} refused: the results of these calls exceed {RESULTS_MAX_BYTES} bytes; ask for less at once",
        tool.dotted()
    ))
}

async fn run(scopes: &ScopeService, scope: &ScopeId, call: &Call) -> Result<Answered, Failure> {
    let request = Request::read(call.tool, &call.arguments)?;
    let options = WriteOptions {
        precondition: request.if_version.map(Precondition::Version),
        turn: call.turn,
        idempotency: call.idempotency,
    };
    let done = act(scopes, scope, request.action, options).await;
    let done = done.map_err(|error| sort(call.tool, error))?;
    let mut result = done.result;
    if request.with_version {
        result.insert("version".into(), done.version.into());
    }
    Ok(Answered {
        outcome: Outcome::Result(result.into()),
        replayed: done.replayed,
    })
}

struct Done {
    result: Map<String, Value>,
    version: u64,
    replayed: bool,
}

async fn act(
    scopes: &ScopeService,
    scope: &ScopeId,
    action: Action,
    options: WriteOptions,
) -> Result<Done, ServiceError> {
    let write = async |operation: KvOperation| {
        let written = scopes.write(scope, &[operation], options).await?;
        Ok::<_, ServiceError>((Done::of_write(&written), written.answers.first().copied()))
    };
    Ok(match action {
        Action::Set {
            set,
            reports_written,
        } => {
            let (done, answer) = write(set).await?;
            match answer {
                Some(KvAnswer::Set(was_set)) if reports_written => done.with("written", was_set),
                _ => done,
            }
        }
        Action::Delete(delete) => {
            let (done, answer) = write(delete).await?;
            done.with("deleted", answer == Some(KvAnswer::Deleted(true)))
        }
        Action::Increment(increment) => match write(increment).await? {
            (done, Some(KvAnswer::Value(sum))) => done.with("value", sum),
            (done, _) => done,
        },
        Action::Get(key) => get(scopes, scope, key).await?,
        Action::List => list(scopes, scope).await?,
        Action::WriteTasks {
            tasks,
            keep_unfinished,
        } => {
            let written = scopes.write_tasks(scope, &tasks, keep_unfinished, options);
            Done::of_write(&written.await?)
        }
        Action::ReadTasks => read_tasks(scopes, scope).await?,
        Action::UpdateTask { which, change } => {
            let written = scopes.update_task(scope, &which, &change, options);
            Done::of_write(&written.await?)
        }
    })
}

async fn get(scopes: &ScopeService, scope: &ScopeId, key: ScopeKey) -> Result<Done, ServiceError> {
    let parts = ScopeParts {
        values: &[key],
        ..ScopeParts::default()
    };
    let mut view = scopes.read(scope, &parts).await?;
    let done = Done::of_read(&view);
    Ok(match view.values.pop().flatten() {
        Some(value) => done.with("found", true).with("value", value.into_string()),
        None => done.with("found", false),
    })
}

async fn list(scopes: &ScopeService, scope: &ScopeId) -> Result<Done, ServiceError> {
    let parts = ScopeParts {
        keys: true,
        ..ScopeParts::default()
    };
    let view = scopes.read(scope, &parts).await?;
    let keys: Vec<_> = view.keys.iter().map(ScopeKey::as_str).collect();
    Ok(Done::of_read(&view).with("keys", keys))
}

async fn read_tasks(scopes: &ScopeService, scope: &ScopeId) -> Result<Done, ServiceError> {
    let parts = ScopeParts {
        tasks: true,
        ..ScopeParts::default()
    };
    let view = scopes.read(scope, &parts).await?;
    let tasks = json!(view.tasks.tasks());
    Ok(Done::of_read(&view).with("tasks", tasks))
}

impl Done {
    fn of_write(written: &ScopeWritten) -> Self {
        let done = Self {
            result: Map::new(),
            version: written.stamp.version,
            replayed: written.replayed,
        };
        done.with("ok", true)
    }

    fn of_read(view: &ScopeView) -> Self {
        Self {
            result: Map::new(),
            version: view.stamp.version,
            replayed: false,
        }
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.result.insert(name.into(), value.into());
        self
    }
}

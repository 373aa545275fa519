use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use threadkeep_domain::rfc3339;
use threadkeep_domain::scope::TaskList;
use threadkeep_service::{Run, RunError, RunStatus};

#[derive(Serialize)]
pub(super) struct TaskObject<'a> {
    content: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_form: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct RunObject<'a> {
    run_id: String,
    status: &'static str,
    plan_hash: &'a str,
    cost_summary: Value,
    summary: Value,
    nodes: [(); 0],
    outputs: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<[(); 0]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RunError>,
    created_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
}

impl<'a> TaskObject<'a> {
    pub(super) fn all(tasks: &'a TaskList) -> Vec<Self> {
        let tasks = tasks.tasks().iter();
        tasks
            .map(|task| Self {
                content: &task.content,
                status: task.status.as_str(),
                active_form: task.active_form.as_deref(),
            })
            .collect()
    }
}

/// Renders a task list as the content of its artifact.
pub(super) fn tasks_object(tasks: &TaskList) -> Value {
    json!({"tasks": TaskObject::all(tasks)})
}

impl<'a> RunObject<'a> {
    pub(super) fn of(run: &'a Run, outputs: Box<RawValue>, has_steps: bool) -> Self {
        let has_ended = run.status != RunStatus::Running;
        Self {
            run_id: run.id.to_string(),
            status: run.status.as_str(),
            plan_hash: &run.plan.plan_hash,
            // this server executes nothing, so nothing has a cost
            cost_summary: json!({"total_usd_cents": 0, "line_items": []}),
            summary: json!({
                "total_steps": 0,
                "total_llm_calls": 0,
                "total_tool_calls": 0,
                "total_input_tokens": 0,
                "total_output_tokens": 0,
                "total_cost_cents": 0,
            }),
            nodes: [],
            outputs,
            steps: has_steps.then_some([]),
            workflow_id: run.plan.workflow_id.as_deref(),
            session_id: run.plan.session_id.as_deref(),
            state_id: run.plan.state_id.as_deref(),
            error: run.error.as_ref(),
            created_at: rfc3339(run.created_ms),
            ended_at: has_ended.then(|| rfc3339(run.updated_ms)).flatten(),
        }
    }
}

use std::borrow::Cow;

use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::driver::run::Run;
use crate::driver::{Driver, Stop};
use crate::values::call::{PendingCall, stateless_item_of};
use crate::values::course::Course;
use crate::values::stateless::{
    GeneratedImage, IMAGES_MAX_BYTES, StatelessError, StatelessOutcome, StatelessTools, image_bytes,
};
use threadkeep_service::tools::{StatelessCall, StatelessTool};

impl Driver<'_> {
    /// Runs a call to a stateless tool, and writes the result to the journal. If the process crashes before the write,
    /// the call runs again.
    pub(crate) async fn run_stateless(
        &self,
        run: &mut Run,
        index: u64,
        (tool, call): (StatelessTool, &PendingCall),
        deadline: Instant,
    ) -> Result<(), Stop> {
        let Run {
            request,
            course,
            queue,
            ..
        } = run;
        let limit_error = self.limit_error(request, call);
        let work = async {
            match limit_error {
                Some(error) => StatelessOutcome::Mistake(error),
                None => outcome(&*self.shared.stateless, tool, call, deadline).await,
            }
        };
        let work = timeout_at(deadline, work);
        tokio::pin!(work);
        let outcome = loop {
            tokio::select! {
                biased;
                () = queue.wait_until_due() => self.write_events(queue).await?,
                outcome = &mut work => break outcome,
            }
        };
        let outcome = match outcome {
            Ok(StatelessOutcome::Image(image)) => within_image_limit(image, course, tool),
            Ok(outcome) => outcome,
            Err(_) => failed(tool, "the time of the turn is used up".into()),
        };
        let item = stateless_item_of(request, course, index, (tool, call), &outcome);
        self.record_item(run, (index, Some(tool.as_str())), item, None)
            .await
    }
}

async fn outcome(
    tools: &dyn StatelessTools,
    tool: StatelessTool,
    call: &PendingCall,
    deadline: Instant,
) -> StatelessOutcome {
    let call = match StatelessCall::read(tool, &call.arguments) {
        Ok(call) => call,
        Err(mistake) => return StatelessOutcome::Mistake(mistake),
    };
    let result = match &call {
        StatelessCall::Search(search) => tools.search(search).await.map(|pages| {
            let results = pages
                .iter()
                .map(|page| json!({"title": page.title, "url": page.url, "snippet": page.snippet}));
            let results: Vec<_> = results.collect();
            StatelessOutcome::Text(json!({ "results": results }).to_string())
        }),
        StatelessCall::Fetch(fetch) => tools.fetch(fetch).await.map(StatelessOutcome::Text),
        StatelessCall::Image { prompt } => {
            let left = deadline.saturating_duration_since(Instant::now());
            let image = tools.generate(prompt, left).await;
            image.map(StatelessOutcome::Image)
        }
    };
    result.unwrap_or_else(|error| match error {
        StatelessError::Mistake { .. } => {
            StatelessOutcome::Mistake(format!("{} {error}", tool.dotted()))
        }
        StatelessError::Unavailable(reason) => StatelessOutcome::Failed {
            code: tool.unavailable(),
            error: error_text(tool, &reason),
        },
        StatelessError::Failed(reason) => failed(tool, reason),
    })
}

/// Returns the image, or an error if the response's images would exceed their total size limit.
fn within_image_limit(
    image: GeneratedImage,
    course: &Course,
    tool: StatelessTool,
) -> StatelessOutcome {
    let earlier: usize = course.output.iter().map(image_bytes).sum();
    match earlier + image.base64.len() <= IMAGES_MAX_BYTES {
        true => StatelessOutcome::Image(image),
        false => failed(
            tool,
            format!("the images of a turn have at most {IMAGES_MAX_BYTES} bytes in base64").into(),
        ),
    }
}

fn failed(tool: StatelessTool, reason: Cow<'static, str>) -> StatelessOutcome {
    StatelessOutcome::Failed {
        code: tool.failed(),
        error: error_text(tool, &reason),
    }
}

fn error_text(tool: StatelessTool, reason: &str) -> String {
    format!("{}: {reason}", tool.dotted())
}

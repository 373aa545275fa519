use std::sync::Arc;
use std::time::Instant;

use super::driver::functions;
use crate::service::ResponseService;
use crate::shared::Shared;
use crate::values::error::ResponseError;
use crate::values::model::Question;
use crate::values::request::ResponseRequest;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Json, prompt_of, readable_item};

impl ResponseService {
    /// Counts the tokens of the first question that a response to `request` would send. Stores nothing.
    ///
    /// `conversation` is a scope and a sequence number. The prompt includes the scope's items before that number.
    /// Returns `None` if the upstream does not count tokens.
    pub async fn count_tokens(
        &self,
        request: ResponseRequest,
        conversation: Option<(ScopeId, u64)>,
    ) -> Result<Option<u64>, ResponseError> {
        let items = match conversation {
            Some((scope, before)) => {
                let exchanges = self.0.window_exchanges(&request);
                self.0.earlier(&scope, before, exchanges).await?.items
            }
            None => Vec::new(),
        };
        let input = request.input.iter().map(|item| item.value.clone());
        let items: Vec<_> = items.into_iter().chain(input).collect();
        let bytes = items.iter().map(|item| item.as_str().len()).sum();
        let shared = Arc::clone(&self.0);
        let counting = async move { shared.count_tokens(&request, &items).await };
        self.0.run_standalone(bytes, counting).await
    }
}

impl Shared {
    async fn count_tokens(
        &self,
        request: &ResponseRequest,
        items: &[Json],
    ) -> Result<Option<u64>, ResponseError> {
        let model = self.catalog.find(&request.model);
        let model = model.ok_or(ResponseError::NoModel)?;
        let items: Vec<_> = items
            .iter()
            .map(|item| readable_item(item.as_str()))
            .collect();
        let prompt = prompt_of(items.iter().map(|item| &**item));
        let functions = functions(request);
        let question = Question {
            model: &model.name,
            instructions: request.instructions.as_deref(),
            prompt: &prompt,
            functions: &functions,
            choice: &request.choice,
            parameters: &request.parameters,
            left: self.limits.max_time,
        };
        let start = Instant::now();
        match model.upstream.count_tokens(&question).await.transpose() {
            Some(count) => self.observed(&model, start, count).map(Some),
            None => Ok(None),
        }
    }
}

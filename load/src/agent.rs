use std::future::Future;
use std::sync::Arc;

use goose::goose::{GooseUser, Scenario, Transaction, TransactionFunction};
use reqwest::ClientBuilder;
use tokio::sync::Mutex;

use crate::http::Http;
use crate::run::Run;

/// A simulated user, which repeats its steps until the run ends.
pub(crate) trait Agent: Sized + Send + 'static {
    const NAME: &'static str;

    fn new(run: &Run) -> Self;

    /// Builds a client for this user alone, or returns `None` so that all users share one client.
    fn client(_run: &Run) -> Option<ClientBuilder> {
        None
    }

    fn step(&mut self, http: &mut Http<'_>) -> impl Future<Output = ()> + Send;

    /// Verifies this user's writes at the end of the run.
    fn finish(&mut self, http: &mut Http<'_>) -> impl Future<Output = ()> + Send;
}

struct SharedAgent<A>(Arc<Mutex<A>>);

// a derived `Clone` would require the agent to be `Clone`
impl<A> Clone for SharedAgent<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

pub(crate) fn scenario<A: Agent>(run: &Arc<Run>) -> Scenario {
    let begin: TransactionFunction = {
        let run = Arc::clone(run);
        Arc::new(move |user| {
            let run = Arc::clone(&run);
            Box::pin(async move {
                if let Some(client) = A::client(&run) {
                    user.set_client_builder(client).await?;
                }
                user.set_session_data(SharedAgent(Arc::new(Mutex::new(A::new(&run)))));
                Ok(())
            })
        })
    };
    let step: TransactionFunction = {
        let run = Arc::clone(run);
        Arc::new(move |user| {
            let run = Arc::clone(&run);
            Box::pin(async move {
                if let Some(agent) = shared_agent::<A>(user) {
                    let mut agent = agent.0.lock().await;
                    agent.step(&mut Http::new(user, &run, A::NAME)).await;
                }
                Ok(())
            })
        })
    };
    let finish: TransactionFunction = {
        let run = Arc::clone(run);
        Arc::new(move |user| {
            let run = Arc::clone(&run);
            Box::pin(async move {
                if let Some(agent) = shared_agent::<A>(user) {
                    let mut agent = agent.0.lock().await;
                    agent.finish(&mut Http::new(user, &run, A::NAME)).await;
                }
                Ok(())
            })
        })
    };
    Scenario::new(A::NAME)
        .register_transaction(Transaction::new(begin).set_name("begin").set_on_start())
        .register_transaction(Transaction::new(step).set_name("step"))
        .register_transaction(Transaction::new(finish).set_name("verify").set_on_stop())
}

fn shared_agent<A: Agent>(user: &GooseUser) -> Option<SharedAgent<A>> {
    user.get_session_data().cloned()
}

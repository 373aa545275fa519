use std::future::{Ready, ready};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform, forward_ready};
use actix_web::{Error, HttpMessage};
use futures_util::future::LocalBoxFuture;

use super::completion::{Completion, RequestCompleted};
use super::{CurrentThread, OpenRequest, RequestContext, Services, Threads, response};
use threadkeep_identity::Behalf;
use threadkeep_web::{ApiError, SessionId};

/// The middleware [`Threads`] around the services of one worker.
#[derive(Debug)]
pub struct ThreadsMiddleware<S> {
    inner: Rc<S>,
    worker: Services,
    threads: Rc<Threads>,
}

impl<S, B> Transform<S, ServiceRequest> for Threads
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    S::Future: 'static,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Transform = ThreadsMiddleware<S>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, inner: S) -> Self::Future {
        ready(Ok(ThreadsMiddleware {
            inner: Rc::new(inner),
            worker: self.services.for_worker(),
            threads: Rc::new(self.clone()),
        }))
    }
}

impl<S, B> Service<ServiceRequest> for ThreadsMiddleware<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    S::Future: 'static,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self::Response, Error>>;

    forward_ready!(inner);

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let start = Instant::now();
        let session = SessionId::random();
        let threads = Rc::clone(&self.threads);
        let (inner, worker) = (Rc::clone(&self.inner), self.worker.clone());
        Box::pin(async move {
            if let Some(prepared) = threads.identity.prepare(request.request()) {
                prepared.await;
            }
            let identity = &threads.identity;
            let identified = identity.identify(request.request()).and_then(|caller| {
                let behalf = identity.behalf(request.request())?;
                Ok((caller, behalf))
            });
            let (caller, behalf) = match identified {
                Ok(identified) => identified,
                Err(error) => {
                    let refusal = request.error_response(ApiError::from(error));
                    return Ok(response::refused(refusal, session));
                }
            };
            if caller.rejected_cookie.is_some() {
                tracing::info!(session.id = %session, "thread cookie ignored: its signature is wrong");
            }
            let (worker, app) = match behalf {
                Behalf::Anyone => (worker, threads.services.clone()),
                Behalf::Caller(owner) => (
                    worker.on_behalf_of(owner.clone()),
                    threads.services.on_behalf_of(owner),
                ),
            };
            let thread = CurrentThread::new(caller, worker, app, threads.endings.clone());
            let completion = Completion::new(threads.background.clone(), threads.callbacks.clone());
            let open = OpenRequest(Arc::new(RequestContext::new(session, thread, completion)));
            request.extensions_mut().insert(Arc::clone(&open.0));
            let handled = inner.call(request);
            let context = &open.0;
            let complete = |status| {
                let completed = RequestCompleted {
                    session,
                    status,
                    duration: start.elapsed(),
                };
                threads.log(&context.thread.id(), completed);
                completed
            };
            match handled.await {
                Ok(response) => {
                    let response = response::settle(response, context, &threads.identity).await;
                    context.end(Some(complete(response.status())));
                    Ok(response)
                }
                Err(error) => {
                    context.thread.discard("the handler failed");
                    context.end(Some(complete(error.as_response_error().status_code())));
                    Err(error)
                }
            }
        })
    }
}

use std::sync::Arc;

use super::drive;
use crate::events::broadcast::Broadcast;
use crate::shared::Shared;
use crate::values::error::ResponseError;
use crate::values::observer::ResponseRefusal;
use crate::values::response::NewResponse;
use threadkeep_trace as trace;

impl Shared {
    /// Starts a driver for a response, unless this process already runs the response. Returns the response's broadcast,
    /// and whether the response was already running.
    pub(crate) fn drive(
        self: &Arc<Self>,
        new: NewResponse,
    ) -> Result<(Arc<Broadcast>, bool), ResponseError> {
        let joined = self.running.join(new.id, new.fingerprint);
        match &joined {
            Err(ResponseError::TooMany) => self.observer.refused(ResponseRefusal::TooMany),
            Err(ResponseError::Stopping) => self.observer.refused(ResponseRefusal::Stopping),
            _ => {}
        }
        let (broadcast, slot) = joined?;
        let is_joined = slot.is_none();
        if let Some(slot) = slot {
            let driving = drive(Arc::clone(self), new, slot);
            // the driver's spans belong to the trace of this request, even though the driver may outlive the request
            let driving = trace::continuing(trace::parent(), driving);
            self.running.tasks.spawn_on(driving, &self.runtime);
        }
        Ok((broadcast, is_joined))
    }
}

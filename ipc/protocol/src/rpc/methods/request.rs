//! Lines for a front end: requests for approvals, and notifications.

use super::{Notification, NotificationForm};
use crate::approval::ServerRequest;
use crate::rpc::transport::{RequestId, call};

/// Serialises a request for an approval as a line of JSON-RPC.
pub fn request(id: &RequestId, request: &ServerRequest) -> serde_json::Result<String> {
    call(Some(id), request.method(), &request.params()?)
}

/// Serialises a notification as a line of JSON-RPC.
pub fn notification(told: &Notification, form: NotificationForm) -> serde_json::Result<String> {
    call(None, told.method_in(form), &told.params(form)?)
}

//! `exec --approval-socket`: a front end that connects to a socket answers the approvals of a headless run, in the
//! protocol of `serve`.
//!
//! Only one front end of the same user is connected at a time. A request waits for a front end until its time limit.
//! When a front end disconnects, its open requests are denied.

mod peer;
mod place;
mod relay;

pub(super) use place::ApprovalSocket;
pub(super) use relay::relay;

//! `exec --approval-socket`: a front end that connects to a socket answers the approvals of a headless run, in the protocol of `serve`.
//!
//! One front end at a time, of the same user, gets each request and answers it. Requests wait for a front end to
//! connect, as long as their time limit allows. If it disconnects, all its open requests are denied.

mod peer;
mod place;
mod relay;

pub(super) use place::ApprovalSocket;
pub(super) use relay::relay;

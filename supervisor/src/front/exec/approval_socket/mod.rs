//! `exec --approval-socket`: whoever connects answers the approvals of a headless run, in the lines of `serve`.
//!
//! We listen; one front end at a time, of our own uid, gets each request and answers it. A request waits for a front end
//! to connect, as long as an answer counts at all; one that disconnects has answered everything that it was asked with
//! no.

mod peer;
mod place;
mod relay;

pub(super) use place::ApprovalSocket;
pub(super) use relay::relay;

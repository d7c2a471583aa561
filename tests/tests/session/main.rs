//! Sessions from their beginning to their end, and after it: the loop, agents, approvals, plans, the log, resuming and taking back.

mod agents;
mod approval_socket;
mod approvals;
mod broken_off;
mod changes;
mod compaction;
mod front_end;
mod kills;
mod logs;
mod packages;
mod plan_kills;
mod plans;
mod providers;
mod recording;
mod resume;
mod retries;
mod rewind;
mod rewind_plan;
mod roles;
mod serve;
mod serve_python;
mod sessions;
mod sessions_kept;
mod signals;
mod wire;
mod written_calls;

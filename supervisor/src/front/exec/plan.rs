//! `bailiwick plan execute`: a run that starts with the execution of a plan.

use super::{Beginning, carry_out};
use crate::engine::opening::{EarlierPlan, SessionDirs};
use crate::process::exit::Exit;
use crate::settings::args::{ActivityArg, DeniedArg, ExecArgs, ModeArg, PlanExecuteArgs, ProfileArg};

/// A plan that the person approved before the run.
#[derive(Debug)]
pub(crate) struct ApprovedPlan {
    /// The plan's file, and the digest that was approved.
    pub earlier: EarlierPlan,
    /// The text with that digest.
    pub markdown: String,
}

/// Executes the plan. The mode lets the agent write the project, because the plan's approval includes it.
pub(crate) async fn execute_plan(args: PlanExecuteArgs, plan: ApprovedPlan, place: SessionDirs) -> Exit {
    let args = ExecArgs {
        prompt: None,
        command: None,
        directory: args.directory,
        mode: ModeArg::Auto,
        activity: ActivityArg::Plan,
        profile: ProfileArg::Full,
        approve_plan: args.approve_plan,
        confinement: args.confinement,
        output: args.output,
        deltas: false,
        denied: DeniedArg::Fail,
        schema: None,
        patch: args.patch,
        model: args.model,
        image: Vec::new(),
        mcp: args.mcp,
        max_steps: args.max_steps,
        max_tokens: args.max_tokens,
        max_usd: args.max_usd,
        approval_socket: None,
        timeout: args.timeout,
        record: None,
        resume: None,
        goes_on: false,
        fork: false,
        no_rewind: false,
        batch: None,
        inner: None,
    };
    carry_out(&args, Beginning::Plan(plan), place, |_| ()).await.exit
}

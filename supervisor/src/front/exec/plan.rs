use super::{Beginning, carry_out};
use crate::engine::opening::{EarlierPlan, SessionDirs};
use crate::process::exit::Exit;
use crate::settings::args::{ActivityArg, ExecArgs, ModeArg, PlanExecuteArgs};

#[derive(Debug)]
pub(crate) struct ApprovedPlan {
    pub earlier: EarlierPlan,
    pub markdown: String,
}

/// Executes an approved plan. The approval includes write access to the project, so the mode is `auto`.
pub(crate) async fn execute_plan(args: PlanExecuteArgs, plan: ApprovedPlan, place: SessionDirs) -> Exit {
    let args = ExecArgs {
        mode: ModeArg::Auto,
        activity: ActivityArg::Plan,
        approve_plan: args.approve_plan,
        output: args.output,
        patch: args.patch,
        servers: args.servers,
        max_steps: args.max_steps,
        max_tokens: args.max_tokens,
        max_usd: args.max_usd,
        timeout: args.timeout,
        ..ExecArgs::without_flags(args.directory, args.confinement, args.model)
    };
    carry_out(&args, Beginning::Plan(plan), place, |_| ()).await.exit
}

//! The command line.

mod batch;
mod before;
mod flags;
mod mcp;
mod parse;
mod plan;
#[cfg(test)]
mod printed;
#[cfg(test)]
mod reference;
mod relay;
mod review;
mod rewind;
mod rights;
mod sessions;
mod shared;
mod task;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use self::batch::{
    BATCH_STATUS, BatchArgs, BatchCommand, BatchMergeArgs, BatchReportArgs, BatchRunsArgs, SweBenchArgs,
};
pub(crate) use self::flags::{of_batch, of_confinement, of_exec, of_task, of_tui};
pub(crate) use self::mcp::{McpAddArgs, McpCommand, McpListArgs, McpRemoveArgs, McpTestArgs, McpUpdateArgs};
pub(crate) use self::plan::{
    ApproveArgs, ExportArgs, ListArgs, OnePlan, PlanCommand, PlanExecuteArgs, ShowArgs,
};
pub(crate) use self::relay::{ListenPlace as RelayPlace, RelayArgs};
pub(crate) use self::review::{ExecCommand, FailOn, ReviewArgs, ReviewFormat};
pub(crate) use self::rewind::RewindArgs;
pub(crate) use self::rights::{AuditArgs, DoctorArgs, ExplainArgs, SandboxArgs};
pub(crate) use self::sessions::{
    DeleteArgs, ExportSessionArgs, ImportArgs, PruneArgs, SessionOutput, SessionsArgs, SessionsCommand,
    ShowSessionArgs,
};
pub(crate) use self::shared::{AgentArgs, ConfinementArgs, ModelArgs, NETWORK};
pub(crate) use self::task::{ExecArgs, ReplayArgs, ResumeArgs, TuiArgs};
pub(crate) use self::values::{AccessArg, DeniedArg, EngineArg, OutputFormat, SubjectArg};
pub(crate) use self::values::{
    ActivityArg, BaselineArg, ModeArg, ProfileArg, ProviderArg, ReachArg, TierArg,
};
use ipc::rights::Network;
use protocol::network_words::network;

use crate::process::attempt::Attempt;
use crate::process::exit::EXIT_STATUS;

/// A terminal coding agent whose actions the kernel confines.
///
/// Without a command: the terminal UI.
#[derive(Debug, Parser)]
#[command(name = "bailiwick", version, after_help = EXIT_STATUS, override_usage = USAGE)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The terminal UI, where there is no command.
    #[command(flatten)]
    pub tui: TuiArgs,
}

/// Flags of a command may stand before it as well.
const USAGE: &str = "bailiwick [OPTIONS] [PROMPT]\n       bailiwick [OPTIONS] COMMAND";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs one task to its end, without a terminal
    #[command(after_help = EXIT_STATUS, disable_help_subcommand = true)]
    Exec(ExecArgs),
    /// Runs many tasks, each in a checkout of its own, and goes on where it was stopped
    #[command(after_help = BATCH_STATUS)]
    Batch(BatchArgs),
    /// Runs a recorded task again, its model played from the recording; a request that differs ends it with status 6
    #[command(after_help = EXIT_STATUS)]
    Replay(ReplayArgs),
    /// Goes on with a session in the terminal UI
    Resume(ResumeArgs),
    /// Lists the sessions of a project, the last one at the end
    Sessions(SessionsArgs),
    /// Takes files and conversation of a session back to a message of yours
    Rewind(RewindArgs),
    /// Shows a session: messages, replies, calls, approvals, denials and costs
    #[command(after_help = SHOW_STATUS)]
    Show(ShowSessionArgs),
    /// Writes a session into one file, with secrets redacted that have a known form
    Export(ExportSessionArgs),
    /// Makes a session out of a file that `export` wrote
    Import(ImportArgs),
    /// Lists, shows, edits, approves and executes the plans that planners made
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Lists, adds, tests and removes MCP servers, each in a sandbox of its own
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Runs a command under exactly the rights that an agent's command would have
    Sandbox(SandboxArgs),
    /// Serves the model API to places without key and network, strictly and within budgets
    #[command(after_help = RELAY_STATUS)]
    Relay(RelayArgs),
    /// Serves other front ends: JSON-RPC 2.0 on standard input and output
    #[command(after_help = SERVE_STATUS)]
    Serve(ServeArgs),
    /// Serves editors: the Agent Client Protocol on standard input and output
    #[command(after_help = ACP_STATUS)]
    Acp(AcpArgs),
    /// Shows what this machine enforces, by trying
    Doctor(DoctorArgs),
    /// Says whether agents may use a path, an address or a command, why, and what would change it
    #[command(after_help = EXPLAIN_STATUS)]
    Explain(ExplainArgs),
    /// Checks a session's log and adds up what its agents did; or tries what an agent could do in a project
    #[command(after_help = AUDIT_STATUS)]
    Audit(AuditArgs),
    /// Shows the settings of a project that differ from the defaults, with their origins
    Config(ConfigArgs),
    /// Repairs a sample project with a scripted model in a real sandbox; no key, no network
    #[command(after_help = DEMO_STATUS)]
    Demo(DemoArgs),
    /// Prints a shell's completions of this command line
    Completions(CompletionsArgs),
    /// Tools for those who work on Bailiwick itself
    #[command(subcommand, hide = true)]
    Debug(DebugCommand),
}

/// The exit status of `serve`, which has the ends of its conversations in its events.
const SERVE_STATUS: &str = "\
Exit status: 0 after `shutdown` or the end of input, 1 when standard output is gone, 130 or 143 by a signal.";

/// The exit status of `acp`.
const ACP_STATUS: &str =
    "Exit status: 0 after the end of input, 1 when standard output is gone, 129, 130 or 143 by a signal.";

/// The exit status of `relay`.
const RELAY_STATUS: &str =
    "Exit status: 0 when its caller has ended; 1 internal error; 2 usage; 129, 130 or 143 by a signal.";

/// The exit status of `demo`.
const DEMO_STATUS: &str = "\
Exit status: 0 all was shown, and with --attack every attack blocked; 1 not so; 2 usage; 5 no sandbox here.";

/// The exit status of `explain`.
const EXPLAIN_STATUS: &str =
    "Exit status: 0, whatever the answer is; 2 usage; 5 nothing can be confined here.";

/// The exit status of `show`.
const SHOW_STATUS: &str =
    "Exit status: 0 the log is as it was written; 1 it was changed, and shown all the same; 2 usage.";

/// The exit status of `audit`.
const AUDIT_STATUS: &str = "\
Exit status: 0 the log is whole and its events agree, or all is as declared; 1 it is not; 2 usage; 5 nothing can be confined here;
7 the log is whole, and its events do not agree.";

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Prints the JSON schema of the protocol, and serves nobody
    #[arg(long)]
    pub print_schema: bool,
}

/// Arguments of `acp`.
#[derive(Debug, Args)]
pub(crate) struct AcpArgs {
    /// Asks before changes, makes or denies them [default: settings, or ask]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// Widest mode that the editor can set [default: that of the start]
    #[arg(long, value_enum, value_name = "MODE")]
    pub up_to: Option<ModeArg>,
    /// The network, at most: off, on, or hosts by name [default: off]
    #[arg(long, value_parser = network, value_name = NETWORK)]
    pub net: Option<Network>,
    /// With the network on, also allows: host, lan, link-local, or metadata
    #[arg(long, value_enum, value_name = "PLACE")]
    pub reach: Vec<ReachArg>,
    /// Makes another file or directory writable
    #[arg(long, value_name = "PATH")]
    pub write: Vec<PathBuf>,
    /// Lets commands reach a unix socket of another program
    #[arg(long, value_name = "PATH")]
    pub socket: Vec<PathBuf>,
    /// Hides a path's content beside the default ones
    #[arg(long, value_name = "PATH")]
    pub hide: Vec<PathBuf>,
    /// Passes a variable to commands
    #[arg(long, value_name = "NAME")]
    pub env: Vec<String>,
    /// Starts although a layer of the sandbox is missing, and says which
    #[arg(long)]
    pub allow_degraded: bool,
    /// Keeps or restores what differs after a run that was killed
    #[arg(long, value_enum, value_name = "WORD")]
    pub baseline: Option<BaselineArg>,
    /// Takes the best sandbox of this machine, or one tier alone
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
    /// The model, and who is asked
    #[command(flatten)]
    pub model: ModelArgs,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Arguments of `config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Prints JSON, with every setting
    #[arg(long)]
    pub json: bool,
    /// Shows the settings that have their defaults, too
    #[arg(long)]
    pub all: bool,
    /// What else to do
    #[command(subcommand)]
    pub command: Option<ConfigCommand>,
}

/// What there is to do about settings.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Lists every key that a file may have, with its default
    Keys(KeysArgs),
    /// Lists what the project's `.bailiwick.toml` would enable, and asks whether it may
    Trust(TrustArgs),
}

/// Arguments of `config keys`.
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    /// Only the keys whose names contain this
    pub name: Option<String>,
}

/// Arguments of `config trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Takes the trust back
    #[arg(long)]
    pub forget: bool,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Leaves the sample project in this directory, which must not exist yet
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Plays it in the terminal UI, where you answer
    #[arg(long)]
    pub tui: bool,
    /// Tries attacks instead and shows what stops each
    #[arg(long, conflicts_with_all = ["keep", "tui"])]
    pub attack: bool,
    /// With --attack: the network, off, on, or hosts [default: off]
    #[arg(long, value_parser = network, value_name = NETWORK, requires = "attack")]
    pub net: Option<Network>,
    /// With --attack and --net on: host, lan, link-local, or metadata
    #[arg(long, value_enum, value_name = "PLACE", requires = "attack")]
    pub reach: Vec<ReachArg>,
    /// With --attack: makes another file or directory writable
    #[arg(long, value_name = "PATH", requires = "attack")]
    pub write: Vec<PathBuf>,
    /// Sandbox to use [default: strongest available]
    #[arg(long, value_enum, default_value_t = TierArg::Best, hide_default_value = true)]
    pub tier: TierArg,
}

/// Tools for those who work on Bailiwick itself.
#[derive(Debug, Subcommand)]
pub(crate) enum DebugCommand {
    /// Sends one request body and prints what came back, as JSON
    Stream(DebugStreamArgs),
    /// Writes the manual pages, one for each command
    Man {
        /// The directory for them
        pages: PathBuf,
    },
    /// Makes an attack of `demo --attack` that takes more than a shell
    #[command(subcommand, hide = true)]
    Attempt(Attempt),
}

/// Arguments of `debug stream`.
#[derive(Debug, Args)]
pub(crate) struct DebugStreamArgs {
    /// The address of the server
    #[arg(long, value_name = "URL")]
    pub base_url: String,
    /// The file with the body of the request
    #[arg(long, value_name = "FILE")]
    pub request: PathBuf,
    /// What the server speaks
    #[arg(long, value_enum, default_value_t = ProviderArg::Anthropic)]
    pub provider: ProviderArg,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, ValueEnum};
    use ipc::confinement::TierChoice;

    use super::*;
    use model::provider::ProviderKind;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_provider_is_a_flag_by_its_own_name() {
        let flags: Vec<_> =
            ProviderArg::value_variants().iter().map(|flag| ProviderKind::from(*flag)).collect();
        assert_eq!(flags, ProviderKind::ALL);
        for (flag, kind) in ProviderArg::value_variants().iter().zip(flags) {
            assert_eq!(flag.to_possible_value().unwrap().get_name(), kind.as_str());
        }
    }

    #[test]
    fn exec_denies_writing_unless_told() {
        let cli = Cli::try_parse_from(["bailiwick", "exec", "fix it"]).unwrap();
        let Some(Command::Exec(args)) = cli.command else { unreachable!() };
        assert_eq!((args.mode, args.confinement.net), (ModeArg::Deny, None));
    }

    #[test]
    fn a_run_without_flags_is_what_the_command_line_makes_of_none() {
        let Some(Command::Exec(parsed)) = Cli::try_parse_from(["bailiwick", "exec"]).unwrap().command else {
            unreachable!()
        };
        let (directory, model) = (parsed.directory.clone(), parsed.model.clone());
        let made = ExecArgs::without_flags(directory, ConfinementArgs::default(), model);
        assert_eq!(format!("{made:?}"), format!("{parsed:?}"));
    }

    #[test]
    fn without_a_command_it_is_the_ui_which_asks() {
        let cli = Cli::try_parse_from(["bailiwick", "-C", "/x", "fix the test"]).unwrap();
        assert!(cli.command.is_none());
        assert_eq!((cli.tui.prompt.as_deref(), cli.tui.mode), (Some("fix the test"), None));
        // A word that is no command is not sent to a model.
        for line in [&["bailiwick", "exce"][..], &["bailiwick", " "]] {
            assert_eq!(Cli::read(line).unwrap_err().exit_code(), 2, "{line:?}");
        }
    }

    #[test]
    fn each_place_within_reach_is_named() {
        let line =
            ["bailiwick", "sandbox", "--net", "on", "--reach", "host", "--reach", "metadata", "--", "true"];
        let Some(Command::Sandbox(args)) = Cli::try_parse_from(line).unwrap().command else { unreachable!() };
        assert_eq!(args.confinement.reach, [ReachArg::Host, ReachArg::Metadata]);
        assert_eq!(TierChoice::from(args.confinement.tier), TierChoice::Best);
    }

    #[test]
    fn what_is_not_built_is_a_usage_error() {
        let line = ["bailiwick", "exec", "--batch", "x"];
        assert_eq!(Cli::try_parse_from(line).unwrap_err().exit_code(), 2);
    }
}

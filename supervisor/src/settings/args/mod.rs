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
pub(crate) use self::shared::{AgentArgs, ConfinementArgs, ModelArgs, NETWORK, ServerArgs};
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
    /// Command to run.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the terminal UI, without a command.
    #[command(flatten)]
    pub tui: TuiArgs,
}

/// Usage line. A command's flags may also be written before the command.
const USAGE: &str = "bailiwick [OPTIONS] [PROMPT]\n       bailiwick [OPTIONS] COMMAND";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one task, without a terminal UI
    #[command(after_help = EXIT_STATUS, disable_help_subcommand = true)]
    Exec(ExecArgs),
    /// Run many tasks, each in its own checkout; can continue a stopped batch
    #[command(after_help = BATCH_STATUS)]
    Batch(BatchArgs),
    /// Run a recorded task again; exits with 6 when a request differs
    #[command(after_help = EXIT_STATUS)]
    Replay(ReplayArgs),
    /// Continue a session in the terminal UI
    Resume(ResumeArgs),
    /// List the sessions of a project, the newest last
    Sessions(SessionsArgs),
    /// Restore files and conversation to before one of your messages
    Rewind(RewindArgs),
    /// Show a session: messages, tool calls, approvals, blocked actions and costs
    #[command(after_help = SHOW_STATUS)]
    Show(ShowSessionArgs),
    /// Export a session to a file; redacts secrets of a known form
    Export(ExportSessionArgs),
    /// Import a session from a file of `export`
    Import(ImportArgs),
    /// List, show, edit, approve and execute plans
    #[command(subcommand)]
    Plan(PlanCommand),
    /// List, add, test and remove MCP servers, each in its own sandbox
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Run a command in the sandbox of an agent's commands
    Sandbox(SandboxArgs),
    /// Relay the model API to sandboxes that hold no key
    #[command(after_help = RELAY_STATUS)]
    Relay(RelayArgs),
    /// Serve other front ends: JSON-RPC 2.0 on standard input and output
    #[command(after_help = SERVE_STATUS)]
    Serve(ServeArgs),
    /// Serve editors: Agent Client Protocol on standard input and output
    #[command(after_help = ACP_STATUS)]
    Acp(AcpArgs),
    /// Test the sandbox on this machine and show the results
    Doctor(DoctorArgs),
    /// Explain whether agents may use a path, address or command, and why
    #[command(after_help = EXPLAIN_STATUS)]
    Explain(ExplainArgs),
    /// Check a session's log and sum up its agents' actions; or test an agent's access
    #[command(after_help = AUDIT_STATUS)]
    Audit(AuditArgs),
    /// Show settings that differ from the defaults, with their origins
    Config(ConfigArgs),
    /// Repair a sample project with a scripted model; needs no key
    #[command(after_help = DEMO_STATUS)]
    Demo(DemoArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Tools for developers of Bailiwick
    #[command(subcommand, hide = true)]
    Debug(DebugCommand),
}

/// Help about exit statuses. They do not report the ends of conversations, which are events.
const SERVE_STATUS: &str = "\
Exit status: 0 after `shutdown` or the end of input, 1 when standard output is gone, 130 or 143 by a signal.";

const ACP_STATUS: &str =
    "Exit status: 0 after the end of input, 1 when standard output is gone, 129, 130 or 143 by a signal.";

const RELAY_STATUS: &str =
    "Exit status: 0 when its caller has ended; 1 internal error; 2 usage; 129, 130 or 143 by a signal.";

const DEMO_STATUS: &str = "\
Exit status: 0 all was shown, and with --attack every attack was blocked; 1 otherwise; 2 usage; 5 no sandbox here.";

const EXPLAIN_STATUS: &str = "Exit status: 0, whatever the answer is; 2 usage; 5 no sandbox here.";

const SHOW_STATUS: &str =
    "Exit status: 0 the log is intact; 1 the log was changed, and is shown anyway; 2 usage.";

const AUDIT_STATUS: &str = "\
Exit status: 0 the log is intact and its events are consistent, or with --probe all access is as declared; 1 the log was changed, or
the access is wider; 2 usage; 5 no sandbox here; 7 the log is intact, but its events contradict each other.";

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Print the JSON schema of the protocol and exit
    #[arg(long)]
    pub print_schema: bool,
}

/// Arguments of `acp`.
#[derive(Debug, Args)]
pub(crate) struct AcpArgs {
    /// Approval mode: ask, allow or deny [default: from settings, or ask]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// Widest mode that the editor can set [default: same as `--mode`]
    #[arg(long, value_enum, value_name = "MODE")]
    pub up_to: Option<ModeArg>,
    /// Widest network access: off, on, or hosts by name [default: off]
    #[arg(long, value_parser = network, value_name = NETWORK)]
    pub net: Option<Network>,
    /// With the network on, also allow this kind of address
    #[arg(long, value_enum, value_name = "PLACE")]
    pub reach: Vec<ReachArg>,
    /// Make another file or directory writable
    #[arg(long, value_name = "PATH")]
    pub write: Vec<PathBuf>,
    /// Let commands reach a unix socket of another program
    #[arg(long, value_name = "PATH")]
    pub socket: Vec<PathBuf>,
    /// Hide the content of this path, in addition to the defaults
    #[arg(long, value_name = "PATH")]
    pub hide: Vec<PathBuf>,
    /// Pass an environment variable to commands
    #[arg(long, value_name = "NAME")]
    pub env: Vec<String>,
    /// Start even if a sandbox layer is unavailable
    #[arg(long)]
    pub allow_degraded: bool,
    /// Keep or restore executed files that a killed session changed
    #[arg(long, value_enum, value_name = "WORD")]
    pub baseline: Option<BaselineArg>,
    /// Sandbox to use [default: strongest available]
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
    /// Model options.
    #[command(flatten)]
    pub model: ModelArgs,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that reads the completions
    pub shell: Shell,
}

/// Arguments of `config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Print JSON with all settings
    #[arg(long)]
    pub json: bool,
    /// Also show settings that have their defaults
    #[arg(long)]
    pub all: bool,
    /// Another command for the settings
    #[command(subcommand)]
    pub command: Option<ConfigCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List all keys of the settings with their defaults
    Keys(KeysArgs),
    /// Show what the project's `.bailiwick.toml` would enable, and ask for your trust
    Trust(TrustArgs),
}

/// Arguments of `config keys`.
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    /// List only keys whose names contain this
    pub name: Option<String>,
}

/// Arguments of `config trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Withdraw your trust
    #[arg(long)]
    pub forget: bool,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the sample project in this new directory
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Run in the terminal UI, where you answer approvals
    #[arg(long)]
    pub tui: bool,
    /// Try attacks instead, and show what blocks each
    #[arg(long, conflicts_with_all = ["keep", "tui"])]
    pub attack: bool,
    /// With --attack: network access, off, on, or hosts [default: off]
    #[arg(long, value_parser = network, value_name = NETWORK, requires = "attack")]
    pub net: Option<Network>,
    /// With --attack and --net on: also allow this kind of address
    #[arg(long, value_enum, value_name = "PLACE", requires = "attack")]
    pub reach: Vec<ReachArg>,
    /// With --attack: make another file or directory writable
    #[arg(long, value_name = "PATH", requires = "attack")]
    pub write: Vec<PathBuf>,
    /// Sandbox to use [default: strongest available]
    #[arg(long, value_enum, default_value_t = TierArg::Best, hide_default_value = true)]
    pub tier: TierArg,
}

/// Tools for developers of Bailiwick.
#[derive(Debug, Subcommand)]
pub(crate) enum DebugCommand {
    /// Send one request body and print the reply as JSON
    Stream(DebugStreamArgs),
    /// Writes the manual pages, one for each command
    Man {
        /// Directory to write to
        pages: PathBuf,
    },
    /// Run an attack of `demo --attack` that a shell cannot run
    #[command(subcommand, hide = true)]
    Attempt(Attempt),
}

/// Arguments of `debug stream`.
#[derive(Debug, Args)]
pub(crate) struct DebugStreamArgs {
    /// Address of the server
    #[arg(long, value_name = "URL")]
    pub base_url: String,
    /// File with the body of the request
    #[arg(long, value_name = "FILE")]
    pub request: PathBuf,
    /// API of the server
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

//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ipc::confinement::TierChoice;
use ipc::cost::{NotAnAmount, Usd};

use super::exit::EXIT_STATUS;
use crate::gate::ApprovalMode;
use crate::provider::ProviderKind;

/// A terminal coding agent whose actions the kernel confines.
///
/// Without a command: the terminal UI.
#[derive(Debug, Parser)]
#[command(name = "bailiwick", version, after_help = EXIT_STATUS, args_conflicts_with_subcommands = true)]
pub(super) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The terminal UI, where there is no command.
    #[command(flatten)]
    pub tui: TuiArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Runs one task to its end, without a terminal
    #[command(after_help = EXIT_STATUS)]
    Exec(ExecArgs),
    /// Runs a recorded task again, its model played from the recording; a request that differs ends it with status 6
    #[command(after_help = EXIT_STATUS)]
    Replay(ReplayArgs),
    /// Runs a command under exactly the rights that an agent's command would have
    Sandbox(SandboxArgs),
    /// Serves other front ends: JSON-RPC 2.0 on standard input and output
    #[command(after_help = SERVE_STATUS)]
    Serve(ServeArgs),
    /// Shows what this machine enforces, by trying
    Doctor(DoctorArgs),
    /// Says whether agents may use a path, an address or a command, why, and what would change it
    #[command(after_help = EXPLAIN_STATUS)]
    Explain(ExplainArgs),
    /// Checks a session's log and adds up what its agents did; or tries what an agent could do in a project
    #[command(after_help = AUDIT_STATUS)]
    Audit(AuditArgs),
    /// Shows the settings that hold in a project, and where each of them comes from
    Config(ConfigArgs),
    /// Fixes a bug in a sample project with a recorded model, really confined: no key, no network
    Demo(DemoArgs),
    /// Tools for those who work on Bailiwick itself
    #[command(subcommand)]
    Debug(DebugCommand),
    /// Measures ourselves beside the floor, in one run
    Bench(BenchArgs),
}

/// Arguments of the terminal UI.
#[derive(Debug, Args)]
pub(super) struct TuiArgs {
    /// The first task
    #[arg(value_parser = task)]
    pub prompt: Option<String>,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,
    /// What becomes of what is beyond the rights: `ask` asks you, `auto` makes the project writable and denies the rest, `deny`
    /// leaves it read-only
    /// [default: what the settings say, or ask]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// What is confined, and how
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// The model [default: what the settings say, or claude-opus-5-5]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Who the model is asked of, and how: `openai` is chat completions, at whatever server speaks them [default: what the
    /// settings say, or who the model is known to be asked of, or anthropic]
    #[arg(long, value_enum, value_name = "PROVIDER")]
    pub provider: Option<ProviderArg>,
    /// The address of the provider's API, or of a server that speaks it; a path prefix is kept
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Writes the traffic with the model into this directory, which is made; see docs/recording.md
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
}

/// The first task, on the command line. One word is rather a command that does not exist, and would be paid for.
fn task(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    if !text.contains(char::is_whitespace) {
        return Err("there is no such command; a task of one word can be typed in the UI".to_owned());
    }
    Ok(text.to_owned())
}

/// An amount of money that something can be had for.
fn amount(text: &str) -> Result<Usd, String> {
    let amount: Usd = text.parse().map_err(|error: NotAnAmount| error.to_string())?;
    if amount == Usd::ZERO { Err("for nothing no model is asked".to_owned()) } else { Ok(amount) }
}

/// The exit status of `serve`, which has the ends of its conversations in its events.
const SERVE_STATUS: &str = "\
Exit status: 0 after `shutdown` or the end of input, 1 when standard output is gone, 130 or 143 by a signal.";

/// Arguments of `exec`.
#[derive(Debug, Args)]
pub(super) struct ExecArgs {
    /// The task; `-` reads it from standard input
    pub prompt: Option<String>,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,
    /// What the agent may do without asking: `auto` makes the project writable, `deny` leaves it read-only, and so does
    /// `ask`, where each change is shown and approved
    #[arg(long, value_enum, default_value_t = ModeArg::Deny)]
    pub mode: ModeArg,
    /// What is confined, and how
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// What is printed on standard output
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Writes the change as a diff that `git apply` accepts, whatever the exit status
    #[arg(long, value_name = "FILE")]
    pub patch: Option<PathBuf>,
    /// The model [default: what the settings say, or claude-opus-5-5]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Who the model is asked of, and how: `openai` is chat completions, at whatever server speaks them [default: what the
    /// settings say, or who the model is known to be asked of, or anthropic]
    #[arg(long, value_enum, value_name = "PROVIDER")]
    pub provider: Option<ProviderArg>,
    /// The address of the provider's API, or of a server that speaks it; a path prefix is kept
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Shows the model a picture (PNG, JPEG, GIF or WebP) with the task
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// Ends the run after this many replies of the model
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,
    /// Ends the run when this many tokens are spent in all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Ends the run before the next request once it has cost this many US dollars
    #[arg(long, value_name = "X", value_parser = amount)]
    pub max_usd: Option<Usd>,
    /// Listens at this path for a front end that answers approvals (with `--mode ask`); see docs/protocol.md
    #[arg(long, value_name = "PATH")]
    pub approval_socket: Option<PathBuf>,
    /// Ends the run after this many seconds
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: Option<u64>,
    /// Writes the traffic with the model into this directory, which is made; see docs/recording.md
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
}

/// What is confined, and how.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ConfinementArgs {
    /// The network: off, or outbound [default: off]
    #[arg(long, value_enum)]
    pub net: Option<NetArg>,
    /// Lets the network lead further, where it is on: to this machine itself, to link-local addresses, or to a cloud's
    /// metadata service
    #[arg(long, value_enum, value_name = "PLACE")]
    pub reach: Vec<ReachArg>,
    /// Makes another file or directory writable
    #[arg(long, value_name = "PATH")]
    pub write: Vec<PathBuf>,
    /// Hides a path's content beside the default ones
    #[arg(long, value_name = "PATH")]
    pub hide: Vec<PathBuf>,
    /// Passes a variable to commands, or sets it
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Starts although a layer of the sandbox is missing, and says which
    #[arg(long)]
    pub allow_degraded: bool,
    /// What the kernel is to hold it by: the best that it can, or one tier and no other
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
}

/// Arguments of `sandbox`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: that of CMD (128+n by signal), or 5 if CMD never started.")]
pub(super) struct SandboxArgs {
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,
    /// Whether the project is writable
    #[arg(long, value_enum, default_value_t = AccessArg::Write)]
    pub access: AccessArg,
    /// What is confined, and how
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// The directory of the recording
    #[arg(value_name = "DIR")]
    pub recording: PathBuf,
    /// The project: as it was when the recording was made
    #[arg(short = 'C', value_name = "PROJECT", default_value = ".")]
    pub directory: PathBuf,
    /// What is printed on standard output
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Writes the change as a diff that `git apply` accepts, whatever the exit status
    #[arg(long, value_name = "FILE")]
    pub patch: Option<PathBuf>,
    /// Lets each piece of a response come when it came
    #[arg(long)]
    pub timing: bool,
    /// Runs nothing: serves the responses on loopback, in their order, to whoever asks, and prints the address
    #[arg(long, conflicts_with_all = ["directory", "output", "patch", "timeout", "tier", "allow_degraded"])]
    pub serve: bool,
    /// Ends the run after this many seconds
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: Option<u64>,
    /// What the kernel is to hold it by: the best that it can, or one tier and no other
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
    /// Starts although a layer of the sandbox is missing, and says which
    #[arg(long)]
    pub allow_degraded: bool,
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Prints the JSON schema of the protocol, and serves nobody
    #[arg(long)]
    pub print_schema: bool,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if agents can be confined here, else 5.")]
pub(super) struct DoctorArgs {
    /// Prints JSON
    #[arg(long)]
    pub json: bool,
    /// Asks the provider's API for an answer too, without a key
    #[arg(long)]
    pub api: bool,
    /// What the kernel is to hold programs by: the best that it can, or one tier and no other
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
}

/// The exit status of `explain`.
const EXPLAIN_STATUS: &str =
    "Exit status: 0, whatever the answer is; 2 usage; 5 nothing can be confined here.";

/// The exit status of `audit`.
const AUDIT_STATUS: &str = "\
Exit status: 0 the log is whole, or all is as declared; 1 it is not; 2 usage; 5 nothing can be confined here.";

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// A session, by its id or by the file of its log
    #[arg(value_name = "ID", required_unless_present = "probe")]
    pub session: Option<PathBuf>,
    /// Starts a confinement as an agent in the project would have it, tries paths, sockets and system calls from inside, and
    /// compares with what is declared. No file is changed; whoever listens at a unix socket that can be reached sees a
    /// connection that says nothing
    #[arg(long, conflicts_with = "session")]
    pub probe: bool,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,
    /// What becomes of what is beyond the rights [default: what the settings say, or ask]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// What is confined, and how
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// Prints JSON
    #[arg(long)]
    pub json: bool,
}

impl AuditArgs {
    /// The same for a place of which everything is to be explained.
    pub(super) fn as_explained(&self) -> ExplainArgs {
        ExplainArgs {
            what: OsString::new(),
            kind: None,
            directory: self.directory.clone(),
            mode: self.mode,
            confinement: self.confinement.clone(),
            json: self.json,
        }
    }
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// A path, HOST:PORT, or a command in quotes
    #[arg(value_name = "WHAT")]
    pub what: OsString,
    /// What it is, where its form does not tell
    #[arg(long = "as", value_enum, value_name = "KIND")]
    pub kind: Option<SubjectArg>,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,
    /// What becomes of what is beyond the rights [default: what the settings say, or ask]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// What is confined, and how
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// Prints JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `config`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ConfigArgs {
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,
    /// Prints JSON
    #[arg(long)]
    pub json: bool,
    /// What else to do
    #[command(subcommand)]
    pub command: Option<ConfigCommand>,
}

/// What there is to do about settings.
#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Lists what the project's `.bailiwick.toml` would enable, and asks whether it may
    Trust(TrustArgs),
}

/// Arguments of `config trust`.
#[derive(Debug, Args)]
pub(super) struct TrustArgs {
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,
    /// Takes the trust back
    #[arg(long)]
    pub forget: bool,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Leaves the sample project in this directory, which must not exist yet
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Plays it in the terminal UI
    #[arg(long)]
    pub tui: bool,
}

/// Tools for those who work on Bailiwick itself.
#[derive(Debug, Subcommand)]
pub(super) enum DebugCommand {
    /// Sends one request body and prints what came back, as JSON
    Stream(DebugStreamArgs),
}

/// Arguments of `debug stream`.
#[derive(Debug, Args)]
pub(super) struct DebugStreamArgs {
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

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    /// Only the measurements whose name contains this
    pub name: Option<String>,
    /// Prints JSON
    #[arg(long)]
    pub json: bool,
    /// Measures connections in this very process: what `connect` runs confined and unconfined
    #[arg(long, hide = true)]
    pub inside: bool,
}

/// `--mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// The project is read-only; what is beyond is asked for.
    Ask,
    /// The project is writable; what is beyond is denied.
    Auto,
    /// The project is read-only.
    Deny,
}

/// `--net`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetArg {
    /// No network.
    Off,
    /// Outbound connections.
    On,
}

/// `--reach`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReachArg {
    /// This machine's own addresses.
    Host,
    /// Link-local addresses.
    LinkLocal,
    /// The addresses at which clouds hand out credentials.
    Metadata,
}

/// `--tier`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TierArg {
    /// The full tier where this machine can, else the floor.
    #[default]
    Best,
    /// The full tier, or no start.
    Full,
    /// The floor.
    Floor,
}

/// `--access`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum AccessArg {
    /// The project is writable.
    Write,
    /// It is not, and the network is off.
    Read,
}

/// `--as`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SubjectArg {
    /// A file or directory, whether it exists or not.
    Path,
    /// An internet address.
    Address,
    /// A command, as `bash -c` gets it.
    Command,
}

/// `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// The model's words.
    Text,
    /// The result, as one JSON object.
    Json,
    /// The session's events, one JSON object a line, as they happen.
    StreamJson,
}

/// `--provider`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ProviderArg {
    /// The Messages API.
    Anthropic,
    /// Chat completions.
    #[value(name = "openai")]
    OpenAi,
    /// The Responses API.
    Responses,
}

impl From<ModeArg> for ApprovalMode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Ask => Self::Ask,
            ModeArg::Auto => Self::Auto,
            ModeArg::Deny => Self::Deny,
        }
    }
}

impl From<ProviderArg> for ProviderKind {
    fn from(provider: ProviderArg) -> Self {
        match provider {
            ProviderArg::Anthropic => Self::Anthropic,
            ProviderArg::OpenAi => Self::OpenAi,
            ProviderArg::Responses => Self::Responses,
        }
    }
}

impl From<TierArg> for TierChoice {
    fn from(tier: TierArg) -> Self {
        match tier {
            TierArg::Best => Self::Best,
            TierArg::Full => Self::Full,
            TierArg::Floor => Self::Floor,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

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
    fn without_a_command_it_is_the_ui_which_asks() {
        let cli = Cli::try_parse_from(["bailiwick", "-C", "/x", "fix the test"]).unwrap();
        assert!(cli.command.is_none());
        assert_eq!((cli.tui.prompt.as_deref(), cli.tui.mode), (Some("fix the test"), None));
        // A word that is no command is not sent to a model.
        for line in [&["bailiwick", "exce"][..], &["bailiwick", " "], &["bailiwick", "-C", "/x", "exec", "y"]]
        {
            assert_eq!(Cli::try_parse_from(line).unwrap_err().exit_code(), 2, "{line:?}");
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
        for line in
            [&["bailiwick", "exec", "--resume", "x"][..], &["bailiwick", "exec", "--activity", "plan", "x"]]
        {
            assert_eq!(Cli::try_parse_from(line).unwrap_err().exit_code(), 2, "{line:?}");
        }
    }
}

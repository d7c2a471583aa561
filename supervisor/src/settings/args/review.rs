//! The arguments of `exec review`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use protocol::cost::Usd;

use super::values::{amount, seconds};
use super::{ModelArgs, TierArg};

/// The exit status of `exec review`.
pub(crate) const REVIEW_STATUS: &str = "\
Exit status: 0 no finding of the severity of --fail-on or above; 8 there is one; 3 the model gave no usable review, or a
budget is spent; 1, 2, 5, 6, 129, 130 and 143 as for `exec`.";

/// The commands of `bailiwick exec`.
#[derive(Debug, Subcommand)]
pub(crate) enum ExecCommand {
    /// Reviews a change with an agent that cannot write, and prints its findings
    #[command(after_help = REVIEW_STATUS)]
    Review(Box<ReviewArgs>),
}

/// Arguments of `exec review`.
#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// Reviews the changes since the branch left this one
    #[arg(long, value_name = "BRANCH", conflicts_with = "commit")]
    pub base: Option<String>,
    /// Reviews this commit [default: what is not committed]
    #[arg(long, value_name = "COMMIT")]
    pub commit: Option<String>,
    /// Tells the reviewer to look at this in particular
    #[arg(long, value_name = "TEXT")]
    pub focus: Option<String>,
    /// The project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Form of the findings on standard output
    #[arg(long, value_enum, default_value_t = ReviewFormat::Text)]
    pub output: ReviewFormat,
    /// Lowest severity of a finding that ends with status 8
    #[arg(long, value_enum, default_value_t = FailOn::Low, value_name = "SEVERITY")]
    pub fail_on: FailOn,
    /// Hides a path's content beside the default ones
    #[arg(long, value_name = "PATH")]
    pub hide: Vec<PathBuf>,
    /// The model, and who is asked
    #[command(flatten)]
    pub model: ModelArgs,
    /// Ends the run after this many replies to all its agents
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,
    /// Ends the run with any agent's reply that reaches these tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Ends the run with any agent's reply that reaches these dollars
    #[arg(long, value_name = "X", value_parser = amount)]
    pub max_usd: Option<Usd>,
    /// Ends the run after this many seconds, as in 90 or 0.5
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Starts although a layer of the sandbox is missing, and says which
    #[arg(long)]
    pub allow_degraded: bool,
    /// Removes at the end what package managers and builds cached
    #[arg(long)]
    pub forget_caches: bool,
    /// Takes the best sandbox of this machine, or one tier alone
    #[arg(long, value_enum, default_value_t = TierArg::Best)]
    pub tier: TierArg,
}

/// The values of `exec review --output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReviewFormat {
    /// A paragraph for each finding.
    Text,
    /// One JSON object.
    Json,
    /// SARIF 2.1.0, as code scanning takes it.
    Sarif,
}

/// The values of `--fail-on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Critical,
    High,
    Medium,
    /// Every finding.
    Low,
    /// No finding.
    Never,
}

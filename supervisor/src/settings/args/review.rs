//! The arguments of `exec review`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use protocol::cost::Usd;

use super::values::{amount, seconds};
use super::{ModelArgs, TierArg};

pub(crate) const REVIEW_STATUS: &str = "\
Exit status: 0 no finding of the severity of --fail-on or above; 8 there is such a finding; 3 the model gave no usable review, or a
budget is spent; 1, 2, 5, 6, 129, 130 and 143 as for `exec`.";

#[derive(Debug, Subcommand)]
pub(crate) enum ExecCommand {
    /// Review a change with a read-only agent and print its findings
    #[command(after_help = REVIEW_STATUS)]
    Review(Box<ReviewArgs>),
}

/// Arguments of `exec review`.
#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// Review changes since the current branch left this one, uncommitted ones included
    #[arg(long, value_name = "BRANCH", conflicts_with = "commit")]
    pub base: Option<String>,
    /// Review this commit [default: uncommitted changes]
    #[arg(long, value_name = "COMMIT")]
    pub commit: Option<String>,
    /// Ask the reviewer to look at this in particular
    #[arg(long, value_name = "TEXT")]
    pub focus: Option<String>,
    /// Directory of the project
    #[arg(short = 'C', value_name = "DIR", default_value = ".", global = true)]
    pub directory: PathBuf,
    /// Format of the findings on standard output
    #[arg(long, value_enum, default_value_t = ReviewFormat::Text)]
    pub output: ReviewFormat,
    /// Lowest severity of a finding that exits with status 8
    #[arg(long, value_enum, default_value_t = FailOn::Low, value_name = "SEVERITY")]
    pub fail_on: FailOn,
    /// Hide the content of this path, in addition to the defaults
    #[arg(long, value_name = "PATH")]
    pub hide: Vec<PathBuf>,
    /// Model options.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Stop after this many model replies, sub-agents included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,
    /// Stop at this many tokens, sub-agents included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Stop at this cost in US dollars, sub-agents included
    #[arg(long, value_name = "X", value_parser = amount)]
    pub max_usd: Option<Usd>,
    /// Stop after this many seconds, such as 90 or 0.5
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Start even if a sandbox layer is unavailable
    #[arg(long)]
    pub allow_degraded: bool,
    /// Remove the caches of package managers and builds at the end
    #[arg(long)]
    pub forget_caches: bool,
    /// Sandbox to use [default: strongest available]
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

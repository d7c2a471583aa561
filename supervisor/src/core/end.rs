//! How a run ends.

use ipc::cost::Usd;
use ipc::event::TokenUsage;

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Why it ended.
    pub reason: EndReason,
    /// A sentence for people, where the reason needs one.
    pub message: Option<String>,
    /// The model's last words.
    pub text: String,
    /// How many requests were answered.
    pub steps: u32,
    /// Tokens in all.
    pub usage: TokenUsage,
    /// What they cost, where the model's prices are known.
    pub cost: Option<Usd>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// The model ended its turn.
    Done,
    /// The model did not get on.
    GaveUp,
    /// The steps are spent.
    StepLimit,
    /// The tokens are spent.
    TokenLimit,
    /// The money is spent.
    CostLimit,
    /// The time is spent.
    TimeLimit,
    /// The model refused.
    Refusal,
    /// The context window is full.
    ContextFull,
    /// The model ended its turn after a denial, and nothing succeeded since.
    DeniedAtEnd,
    /// The user answered a request for an approval by ending the turn.
    Aborted,
    /// The provider failed.
    Provider,
    /// The user interrupted it.
    Interrupted,
    /// The user ended the session.
    Closed,
    /// The session was told to end.
    Terminated,
    /// The session's terminal is gone.
    HungUp,
    /// There is no worker for it; no model was asked.
    NoSandbox,
    /// Bailiwick itself failed.
    Internal,
}

impl RunEnd {
    /// The end of a run of which nothing else is known.
    pub fn without_account(reason: EndReason, message: String) -> Self {
        Self {
            reason,
            message: Some(message),
            text: String::new(),
            steps: 0,
            usage: TokenUsage::default(),
            cost: None,
        }
    }
}

impl EndReason {
    /// Every reason.
    pub const ALL: [Self; 17] = [
        Self::Done,
        Self::GaveUp,
        Self::StepLimit,
        Self::TokenLimit,
        Self::CostLimit,
        Self::TimeLimit,
        Self::Refusal,
        Self::ContextFull,
        Self::DeniedAtEnd,
        Self::Aborted,
        Self::Provider,
        Self::Interrupted,
        Self::Closed,
        Self::Terminated,
        Self::HungUp,
        Self::NoSandbox,
        Self::Internal,
    ];

    /// The exit code of a headless run that ends so.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Done | Self::Closed => 0,
            Self::Internal => 1,
            Self::GaveUp
            | Self::StepLimit
            | Self::TokenLimit
            | Self::CostLimit
            | Self::TimeLimit
            | Self::Refusal
            | Self::ContextFull => 3,
            Self::DeniedAtEnd | Self::Aborted => 4,
            Self::NoSandbox => 5,
            Self::Provider => 6,
            Self::Interrupted => 130,
            Self::HungUp => 129,
            Self::Terminated => 143,
        }
    }

    /// The stable word for it in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::GaveUp => "gave_up",
            Self::StepLimit => "step_limit",
            Self::TokenLimit => "token_limit",
            Self::CostLimit => "cost_limit",
            Self::TimeLimit => "time_limit",
            Self::Refusal => "refusal",
            Self::ContextFull => "context_full",
            Self::DeniedAtEnd => "denied",
            Self::Aborted => "aborted",
            Self::Provider => "provider_error",
            Self::Interrupted => "interrupted",
            Self::Closed => "closed",
            Self::Terminated => "terminated",
            Self::HungUp => "hung_up",
            Self::NoSandbox => "no_sandbox",
            Self::Internal => "internal_error",
        }
    }
}

//! Reasons for which runs, turns and workers end.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Reason for the end of a run or a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum EndReason {
    /// The model ended its turn.
    Done,
    /// The model made no progress.
    GaveUp,
    /// The model answered with neither text nor a tool call, also when it was asked once more.
    NothingSaid,
    /// The model wrote a tool call as text, which its server did not recognise, also when it was asked once more.
    CallAsText,
    /// The answer did not fit the schema of the run, also when the model was asked once more.
    SchemaUnmet,
    /// The limit of steps is reached.
    StepLimit,
    /// The limit of tokens is reached.
    TokenLimit,
    /// The limit of costs is reached.
    CostLimit,
    /// The limit of time is reached.
    TimeLimit,
    /// The model refused to answer.
    Refusal,
    /// The context window is full.
    ContextFull,
    /// The model ended its turn after a denial, and no call succeeded after the denial.
    #[serde(rename = "denied")]
    DeniedAtEnd,
    /// The user answered a request for an approval by ending the turn.
    Aborted,
    /// The requests to the model's provider failed.
    #[serde(rename = "provider_error")]
    Provider,
    /// The user interrupted the turn.
    Interrupted,
    /// The user ended the session.
    Closed,
    /// A signal or the front end ended the session.
    Terminated,
    /// The session's terminal is gone.
    HungUp,
    /// No worker could be started on this machine, so no request was sent to a model.
    NoSandbox,
    /// Bailiwick itself failed.
    #[serde(rename = "internal_error")]
    Internal,
}

impl EndReason {
    /// Every reason.
    pub const ALL: [Self; 20] = [
        Self::Done,
        Self::GaveUp,
        Self::NothingSaid,
        Self::CallAsText,
        Self::SchemaUnmet,
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

    /// Returns the exit code of a headless run that ends for this reason.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Done | Self::Closed => 0,
            Self::Internal => 1,
            Self::GaveUp
            | Self::NothingSaid
            | Self::CallAsText
            | Self::SchemaUnmet
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

    /// Returns the word that stands for the value in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::GaveUp => "gave_up",
            Self::NothingSaid => "nothing_said",
            Self::CallAsText => "call_as_text",
            Self::SchemaUnmet => "schema_unmet",
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

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_str().replace('_', " "))
    }
}

/// Reason for the end of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
pub enum WorkerEnd {
    /// The run ended, and the worker with it.
    RunOver,
    /// The worker exited by itself.
    Exited {
        /// Exit code.
        code: i32,
    },
    /// A signal ended the worker.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// A signal ended the worker's broker, and thereby the worker.
    BrokerSignalled {
        /// The signal's number.
        signal: i32,
    },
    /// The worker was killed because it broke the protocol.
    ProtocolBroken {
        /// Description of the message that was not allowed.
        violation: String,
    },
    /// The worker was killed because its gateway ended.
    GatewayGone,
    /// The worker was killed because it answered no call in time.
    Silent,
    /// The supervisor could not wait for the end of the worker.
    NotWaitedFor {
        /// The error of the wait.
        error: String,
    },
    /// The supervisor's reader of the worker's messages ended.
    ReaderGone,
}

/// Displays a clause with the worker as its subject.
impl fmt::Display for WorkerEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RunOver => f.write_str("the run is over"),
            Self::Exited { code: 0 } => f.write_str("exited"),
            Self::Exited { code } => write!(f, "exited with code {code}"),
            Self::Signalled { signal } => write!(f, "ended by signal {signal}"),
            Self::BrokerSignalled { signal } => write!(f, "the worker's broker was ended by signal {signal}"),
            Self::ProtocolBroken { violation } => write!(f, "killed: invalid message ({violation})"),
            Self::GatewayGone => f.write_str("killed: the gateway to the allowed hosts ended"),
            Self::Silent => f.write_str("killed: no answer in time"),
            Self::NotWaitedFor { error } => write!(f, "ended in an unknown way: {error}"),
            Self::ReaderGone => f.write_str("is gone"),
        }
    }
}

#[cfg(test)]
mod tests {
    use ipc::recorded::Recorded;

    use super::*;

    #[test]
    fn every_reason_has_one_word() {
        for reason in EndReason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }

    #[test]
    fn an_end_is_an_object_and_the_sentence_of_an_older_log_stays_one() {
        let end = Recorded::from(WorkerEnd::Exited { code: 3 });
        let json = r#"{"type":"exited","code":3}"#;
        assert_eq!(serde_json::to_string(&end).unwrap(), json);
        assert_eq!(serde_json::from_str::<Recorded<WorkerEnd>>(json).unwrap(), end);
        let old: Recorded<WorkerEnd> = serde_json::from_str(r#""exited with code 3""#).unwrap();
        assert_eq!(old, Recorded::Unstructured("exited with code 3".to_owned()));
        assert_eq!((old.to_string(), end.to_string()), (end.to_string(), "exited with code 3".to_owned()));
        let error = serde_json::from_str::<Recorded<WorkerEnd>>(r#"{"type":"later"}"#).unwrap_err();
        assert!(error.to_string().contains("later"), "{error}");
        assert!(serde_json::from_str::<Recorded<WorkerEnd>>("7").is_err());
    }
}

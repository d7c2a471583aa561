//! Answers of a front end to requests for an approval.

use ipc::id::ApprovalId;
use serde::{Deserialize, Serialize};

use super::kinds::approval_kinds;
use super::{AskKind, ChangePart, FormValues, SessionScope};
use crate::frontend::Op;

/// A person's decision on one request.
///
/// In JSON an object with `decision` and its fields: `{"decision":"approved"}`,
/// `{"decision":"approved_for_session","scope":{"type":"command_prefix","value":["cargo","test"]}}`,
/// `{"decision":"approved_for_turn"}`,
/// `{"decision":"approved_in_part","part":{"files":[{"path":"/p/a","hunks":[1,3]}],"digest":"…"}}`, `{"decision":"denied","message":"use the other file"}`, `{"decision":"abort"}`; for the form of a server also
/// `{"decision":"approved","values":{"name":"Ada"}}` and `{"decision":"cancelled"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
#[derive(schemars::JsonSchema)]
pub enum ReviewDecision {
    /// Approved once.
    Approved,
    /// Approved, together with the calls in the scope for the rest of the session.
    ApprovedForSession {
        /// Scope of the approval.
        scope: SessionScope,
    },
    /// Approved, together with everything that mode `auto` would allow without the network, until the turn ends. Only
    /// if the request has `turn`.
    ApprovedForTurn,
    /// Approved once, with some hunks of the change or another text of a file. Only where the request has `in_part`;
    /// the response has the digest of the whole change.
    ApprovedInPart {
        /// Selected hunks or texts, and their digest.
        part: ChangePart,
    },
    /// Denied; the agent continues.
    Denied {
        /// A message to the model, if the person wrote one.
        message: Option<String>,
    },
    /// Denied, and the turn ends.
    Abort,
    /// Approved with values: the completed form of an MCP server.
    Filled {
        /// The fields that the person filled in.
        values: FormValues,
    },
    /// The person closed the form of an MCP server without an answer; the agent continues.
    Cancelled,
}

impl ReviewDecision {
    /// A denial without a message to the model.
    pub const DENIED: Self = Self::Denied { message: None };

    /// Returns the decision's name in JSON.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Approved | Self::Filled { .. } => DecisionWord::Approved,
            Self::ApprovedForSession { .. } => DecisionWord::ApprovedForSession,
            Self::ApprovedForTurn => DecisionWord::ApprovedForTurn,
            Self::ApprovedInPart { .. } => DecisionWord::ApprovedInPart,
            Self::Denied { .. } => DecisionWord::Denied,
            Self::Abort => DecisionWord::Abort,
            Self::Cancelled => DecisionWord::Cancelled,
        }
        .as_str()
    }

    pub(crate) fn word_in(result: &str) -> Option<&'static str> {
        #[derive(Deserialize)]
        struct Decided {
            decision: DecisionWord,
        }
        serde_json::from_str(result).ok().map(|Decided { decision }| decision.as_str())
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(schemars::JsonSchema)]
enum DecisionWord {
    Approved,
    ApprovedForSession,
    ApprovedForTurn,
    ApprovedInPart,
    Denied,
    Abort,
    Cancelled,
}

impl DecisionWord {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::ApprovedForSession => "approved_for_session",
            Self::ApprovedForTurn => "approved_for_turn",
            Self::ApprovedInPart => "approved_in_part",
            Self::Denied => "denied",
            Self::Abort => "abort",
            Self::Cancelled => "cancelled",
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
struct Form {
    decision: DecisionWord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<SessionScope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<ChangePart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    values: Option<FormValues>,
}

impl From<ReviewDecision> for Form {
    fn from(decision: ReviewDecision) -> Self {
        let word = |decision| Self { decision, scope: None, message: None, part: None, values: None };
        match decision {
            ReviewDecision::Approved => word(DecisionWord::Approved),
            ReviewDecision::ApprovedForSession { scope } => {
                Self { scope: Some(scope), ..word(DecisionWord::ApprovedForSession) }
            }
            ReviewDecision::ApprovedForTurn => word(DecisionWord::ApprovedForTurn),
            ReviewDecision::ApprovedInPart { part } => {
                Self { part: Some(part), ..word(DecisionWord::ApprovedInPart) }
            }
            ReviewDecision::Denied { message } => Self { message, ..word(DecisionWord::Denied) },
            ReviewDecision::Abort => word(DecisionWord::Abort),
            ReviewDecision::Filled { values } => {
                Self { values: Some(values), ..word(DecisionWord::Approved) }
            }
            ReviewDecision::Cancelled => word(DecisionWord::Cancelled),
        }
    }
}

impl TryFrom<Form> for ReviewDecision {
    type Error = &'static str;

    fn try_from(form: Form) -> Result<Self, Self::Error> {
        if let Some(part) = form.part {
            return match (form.decision, form.scope, form.message, form.values) {
                (DecisionWord::ApprovedInPart, None, None, None) => Ok(Self::ApprovedInPart { part }),
                _ => Err("only approved_in_part has a part"),
            };
        }
        if let Some(values) = form.values {
            return match (form.decision, form.scope, form.message) {
                (DecisionWord::Approved, None, None) => Ok(Self::Filled { values }),
                _ => Err("only the decision approved can have values"),
            };
        }
        match (form.decision, form.scope, form.message) {
            (DecisionWord::Approved, None, None) => Ok(Self::Approved),
            (DecisionWord::ApprovedForSession, scope, None) => {
                Ok(Self::ApprovedForSession { scope: scope.unwrap_or_default() })
            }
            (DecisionWord::ApprovedForTurn, None, None) => Ok(Self::ApprovedForTurn),
            (DecisionWord::ApprovedInPart, None, None) => Err("approved_in_part has a part"),
            (DecisionWord::Denied, None, message) => Ok(Self::Denied { message }),
            (DecisionWord::Abort, None, None) => Ok(Self::Abort),
            (DecisionWord::Cancelled, None, None) => Ok(Self::Cancelled),
            (_, Some(_), _) => Err("only the decision approved_for_session can have a scope"),
            (_, None, Some(_)) => Err("only the decision denied can have a message"),
        }
    }
}

macro_rules! response {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// In JSON the decision's own fields and `digest`.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "ResponseForm", into = "ResponseForm")]
        #[derive(schemars::JsonSchema)]
        pub struct $name {
            /// The decision: approved, once or for longer, or denied.
            pub decision: ReviewDecision,
            /// The digest of the approved action; if present, it must equal the digest in the request.
            pub digest: Option<String>,
        }

        impl From<$name> for ResponseForm {
            fn from(response: $name) -> Self {
                Self { digest: response.digest, ..Self::from(response.decision) }
            }
        }

        impl TryFrom<ResponseForm> for $name {
            type Error = &'static str;

            fn try_from(form: ResponseForm) -> Result<Self, Self::Error> {
                let digest = form.digest.clone();
                Ok(Self { decision: ReviewDecision::try_from(Form::from(form))?, digest })
            }
        }
    };
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(schemars::JsonSchema)]
struct ResponseForm {
    decision: DecisionWord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<SessionScope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<ChangePart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    values: Option<FormValues>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

impl From<ReviewDecision> for ResponseForm {
    fn from(decision: ReviewDecision) -> Self {
        let Form { decision, scope, message, part, values } = decision.into();
        Self { decision, scope, message, part, values, digest: None }
    }
}

impl From<ResponseForm> for Form {
    fn from(form: ResponseForm) -> Self {
        let ResponseForm { decision, scope, message, part, values, digest: _ } = form;
        Self { decision, scope, message, part, values }
    }
}

macro_rules! answers {
    ($($kind:ident($what:literal): $request:ident($params:ident) -> $response:ident,
        $constant:ident = $method:literal;)*) => {
        $(response! {
            #[doc = concat!("The answer to a request for ", $what, ".")]
            $response
        })*

        /// An answer to a request for an approval, or the reason why there is none.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "type", content = "data", rename_all = "snake_case")]
        pub enum ApprovalAnswer {
            $(#[doc = concat!("An answer to a request for ", $what, ".")] $kind($response),)*
            /// There is no valid answer, which counts as a denial.
            Failed {
                /// The reason why there is no answer, or the fault of an invalid one.
                cause: String,
            },
        }

        impl ApprovalAnswer {
            /// Returns the decision, or `None` if there is no valid answer.
            pub const fn decision(&self) -> Option<&ReviewDecision> {
                match self {
                    $(Self::$kind(response) => Some(&response.decision),)*
                    Self::Failed { .. } => None,
                }
            }

            /// Converts the answer to an operation on the request `id`. The error says why the answer is invalid.
            pub fn into_op(self, id: ApprovalId) -> Result<Op, String> {
                match self {
                    $(Self::$kind($response { decision, digest }) => {
                        Ok(Op::Answer { id, kind: AskKind::$kind, decision, digest })
                    })*
                    Self::Failed { cause } => Err(cause),
                }
            }
        }
    };
}

approval_kinds!(answers);

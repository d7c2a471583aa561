//! The kinds of approvals, in one table.

/// Kinds of approvals: each row has a kind, its request with parameters, its response, and its method.
///
/// `$make` is the macro that makes items of the rows.
macro_rules! approval_kinds {
    ($make:ident) => {
        $make! {
            Patch("a change of files"): ApplyPatchApproval(ApplyPatchApprovalParams) -> ApplyPatchApprovalResponse,
                APPLY_PATCH_APPROVAL_METHOD = "applyPatchApproval";
            Exec("a command"): ExecCommandApproval(ExecCommandApprovalParams) -> ExecCommandApprovalResponse,
                EXEC_COMMAND_APPROVAL_METHOD = "execCommandApproval";
            Denied("a command that was blocked"):
                DeniedCommandApproval(DeniedCommandApprovalParams) -> DeniedCommandApprovalResponse,
                DENIED_COMMAND_APPROVAL_METHOD = "deniedCommandApproval";
            Network("the network"): NetworkApproval(NetworkApprovalParams) -> NetworkApprovalResponse,
                NETWORK_APPROVAL_METHOD = "networkApproval";
            Host("a host that a running command connects to"):
                HostApproval(HostApprovalParams) -> HostApprovalResponse,
                HOST_APPROVAL_METHOD = "hostApproval";
            ExternalTool("a call of an external tool"):
                ExternalToolApproval(ExternalToolApprovalParams) -> ExternalToolApprovalResponse,
                EXTERNAL_TOOL_APPROVAL_METHOD = "externalToolApproval";
            Form("a form that an MCP server asks for"): ServerForm(ServerFormParams) -> ServerFormResponse,
                SERVER_FORM_METHOD = "serverForm";
            Fetch("a page of a host"): FetchApproval(FetchApprovalParams) -> FetchApprovalResponse,
                FETCH_APPROVAL_METHOD = "fetchApproval";
            Agent("the access of a sub-agent"):
                AgentRightsApproval(AgentRightsApprovalParams) -> AgentRightsApprovalResponse,
                AGENT_RIGHTS_APPROVAL_METHOD = "agentRightsApproval";
            Plan("the execution of a plan"): PlanApproval(PlanApprovalParams) -> PlanApprovalResponse,
                PLAN_APPROVAL_METHOD = "planApproval";
        }
    };
}

pub(super) use approval_kinds;

macro_rules! kinds {
    ($($kind:ident($what:literal): $request:ident($params:ident) -> $response:ident,
        $constant:ident = $method:literal;)*) => {
        /// The kind of an approval. Request and answer must be of the same kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum AskKind {
            $(#[doc = concat!("About ", $what, ".")] $kind,)*
        }

        $(
            #[doc = concat!("The method that asks for ", $what, ".")]
            pub const $constant: &str = $method;
        )*

        /// The JSON-RPC methods of all requests for an approval.
        pub const SERVER_METHODS: &[&str] = &[$($constant),*];

        impl AskKind {
            /// All kinds of approvals.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Returns the JSON-RPC method of requests of this kind.
            pub const fn method(self) -> &'static str {
                match self {
                    $(Self::$kind => $constant,)*
                }
            }
        }
    };
}

approval_kinds!(kinds);

//! Codes of the event `notice`.

use super::word::words;

words! {
    /// Kind of a notice. Front ends act on this code alone; the sentence of the notice is for people.
    pub enum NoticeCode {
        /// The answer does not fit the schema of the run: the model is asked once more.
        AnswerMisfit = "answer_misfit",
        /// An answer to a request for an approval has no effect.
        ApprovalIgnored = "approval_ignored",
        /// The user revoked approvals.
        ApprovalsWithdrawn = "approvals_withdrawn",
        /// The model wrote a tool call as text, which was not run.
        CallAsText = "call_as_text",
        /// The session continues as a copy of another one, whose events precede this one.
        Copied = "copied",
        /// The change set is incomplete or missing.
        ChangeSet = "change_set",
        /// A command of the user was not run.
        CommandNotRun = "command_not_run",
        /// A requested summary of the context is made later.
        CompactionQueued = "compaction_queued",
        /// A text was too long for the context.
        ContextCut = "context_cut",
        /// A message without text was not sent.
        EmptyMessage = "empty_message",
        /// A picture was not sent.
        ImageLeftOut = "image_left_out",
        /// A question of an MCP server was declined without asking anybody.
        FormDeclined = "form_declined",
        /// The session was imported: everything before this event came from elsewhere.
        Imported = "imported",
        /// The provider did not accept the interrupted reply, which was left out.
        InterruptedReplyDropped = "interrupted_reply_dropped",
        /// A message was too long, and not sent.
        MessageTooLong = "message_too_long",
        /// Another model answers from now on.
        ModelChanged = "model_changed",
        /// The model cannot be changed to the requested one, or not at this time.
        ModelRefused = "model_refused",
        /// The requested model is the present one already.
        ModelUnchanged = "model_unchanged",
        /// There were more denials than are logged.
        MoreDenied = "more_denied",
        /// A message or an order is for an agent that is not working.
        NoAgent = "no_agent",
        /// The project's instructions were not read.
        NoInstructions = "no_instructions",
        /// The user named an approval by a number that no approval has.
        NoSuchGrant = "no_such_grant",
        /// A plan is unreadable, or asks for access that cannot be given.
        PlanNotRead = "plan_not_read",
        /// A rewind is impossible, or not in this form.
        RewindRefused = "rewind_refused",
        /// The session continues an earlier run.
        Resumed = "resumed",
        /// The provider rejects a part of the conversation, which continues without it.
        PartLeftOut = "part_left_out",
        /// A planner could not be started.
        PlanRefused = "plan_refused",
        /// The agent has no worker.
        NoWorker = "no_worker",
        /// The conversation could not be cleared.
        NotCleared = "not_cleared",
        /// An approval for the session was not added.
        NotAdded = "not_added",
        /// The conversation is empty, or its summary would be longer.
        NothingToCompact = "nothing_to_compact",
        /// The access may not be changed in this way.
        RightsRefused = "rights_refused",
        /// The access or the mode is already the requested one.
        RightsUnchanged = "rights_unchanged",
        /// Old sessions were deleted, as the settings say.
        SessionsDeleted = "sessions_deleted",
        /// A remark about the settings.
        Settings = "settings",
        /// A path that programs of the host run or read later could not be checked.
        Tripwire = "tripwire",
    }
}

impl NoticeCode {
    /// True if a requested change of access or mode will not happen.
    pub const fn ends_change(&self) -> bool {
        matches!(self, Self::RightsRefused | Self::RightsUnchanged | Self::NoWorker)
    }
}

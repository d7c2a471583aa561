//! The outcomes of calls in words for the model. Denials are explained by the access that the call had.

use gate::judgement::{denied, offer};
use gate::tools::{Rendered, diffs_told, how_to_get_less, render, whole_output};
use gate::{Offer, StandingRights};
use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::id::CallId;
use ipc::image::Image;
use ipc::message::CallOutcome;
use ipc::missing_right::MissingRight;
use ipc::rights::{Grant, Network};
use ipc::tool::{Access, CommandExit, ShellExec, ToolCall, ToolError, ToolErrorKind, ToolOutput};
use protocol::event::{EventKind, ObservedBy, ToolCallStatus};

use super::declined::Declined;
use super::ended::Pictures;
use super::machine::Bounds;
use crate::core::call::{CallResult, Denials};
use crate::core::outbox::Outbox;

/// The hint after a denial in a command that the model called with access `read`.
const READ_HINT: &str = "\n(This command ran with access \"read\": it can write only $TMPDIR, and has no network. \
    If it has to do more, leave access out.)";

/// The hint after a denial in a command that the model called with access `read`, if it can ask for write access.
const READ_HINT_TO_ASK: &str = "\n(This command ran with access \"read\": it can write only $TMPDIR, and has no network. If it has to change files, call it again with access \"write\": the user is asked.)";

/// The hint that the model can ask for write access.
const WRITE_HINT: &str =
    "\n(If it has to change files of the project, call it again with access \"write\": the user is asked.)";

/// The hint that the model can ask for the network.
const NETWORK_HINT: &str = "\n(If it needs the network, call it again with network true: the user is asked.)";

/// The context in which an outcome is put into words: the access of the agent, and that of the call.
pub(super) struct Reading<'a> {
    pub(super) bounds: Bounds<'a>,
    /// The access that the call had without an approval.
    pub(super) standing: &'a StandingRights,
    pub(super) declined: &'a Declined,
    /// The approved access that the call had in addition; `None` if the person cannot be asked about another run.
    pub(super) given: Option<Grant>,
}

impl Reading<'_> {
    /// Returns the result of an outcome, with denials explained.
    pub(super) fn result(&self, tool: &ToolCall, outcome: CallOutcome, pictures: Pictures) -> CallResult {
        match outcome {
            CallOutcome::Done(output) => {
                let rest = rest(tool, &output);
                let diffs = match &output {
                    ToolOutput::Written(written) => diffs_told(written),
                    _ => Ok(Vec::new()),
                };
                let result = match output {
                    ToolOutput::Image(image) => result_of_picture(&image, pictures),
                    output => self.result_of_output(tool, &output),
                };
                CallResult { diffs, rest, ..result }
            }
            CallOutcome::Failed(error) => result_of_error(&error, self.standing),
            CallOutcome::Cancelled => CallResult::not_done(
                ToolCallStatus::Interrupted,
                "the call was interrupted before it was done",
            ),
            // The worker was not asked to prepare anything, so its outcome is wrong.
            CallOutcome::Prepared => CallResult::not_done(
                ToolCallStatus::Failed,
                "the worker gave a result that does not match the call",
            ),
        }
    }

    fn result_of_output(&self, tool: &ToolCall, output: &ToolOutput) -> CallResult {
        let standing = self.standing;
        let mut rendered = render(output);
        let (mut explanation, mut denied, mut offer) = (None, None, None);
        if let ToolOutput::Command(result) = output
            && let Some(hint) = denied::git_config_hint(self.bounds.rights.standing(), result)
        {
            rendered.content.push('\n');
            rendered.content.push_str(&hint);
        }
        if let ToolOutput::Command(result) = output
            && let Some(hint) = denied::connection_hint(standing, result)
        {
            rendered.content.push('\n');
            rendered.content.push_str(hint);
        }
        if let (ToolCall::ShellExec(command), ToolOutput::Command(result)) = (tool, output) {
            for advice in denied::advice(standing, &command.command, result) {
                rendered.content.push('\n');
                rendered.content.push_str(&advice);
            }
        }
        if let (ToolCall::ShellExec(command), ToolOutput::Command(ran)) = (tool, output)
            && let denials =
                denied::denials_but(standing, command, ran, |denial| self.declined.covers(denial))
            && let Some(first) = denials.first()
        {
            if ran.exit == CommandExit::Code(0) {
                offer = self.offer(command, ran.exit, &denials);
                let despite = self.despite_success(command, &denials, offer.as_deref());
                rendered.content.push_str(&despite);
                explanation = Some(despite).filter(|text| !text.is_empty());
                denied = Some(Denials::seen(denials, standing, ObservedBy::Worker));
            } else {
                let offer = self.offer(command, ran.exit, &denials);
                if offer.is_none() {
                    rendered.content.push_str(self.asking_hint(command, first));
                }
                let result = explained(denials, rendered, standing, ObservedBy::Worker);
                // The denial is only a likely reason for the command's failure.
                return CallResult { status: ToolCallStatus::Failed, exit: Some(ran.exit), offer, ..result };
            }
        }
        let exit = match output {
            ToolOutput::Command(result) => Some(result.exit),
            _ => None,
        };
        let Rendered { mut content, is_error } = rendered;
        if let (ToolCall::ShellExec(command), ToolOutput::Command(result)) = (tool, output)
            && denied::declared_too_little(command, result)
        {
            content.push_str(if self.bounds.rights.asks() { READ_HINT_TO_ASK } else { READ_HINT });
        }
        let status = if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        CallResult { status, is_error, explanation, exit, denied, offer, ..CallResult::answered(content) }
    }

    /// Returns the offer to run a denied command again with more access. `None` if the person cannot be asked, or
    /// should not be asked about these denials. After a success only certain denials (grade `Proved`) count, and only
    /// those that the person has not declined before.
    fn offer(&self, command: &ShellExec, exit: CommandExit, denials: &[Denial]) -> Option<Box<Offer>> {
        // A command that was killed or ran out of time may have failed for that reason alone.
        let given = self.given.as_ref().filter(|_| matches!(exit, CommandExit::Code(_)))?;
        let is_worth_asking = |denial: &&Denial| {
            exit != CommandExit::Code(0) || denial.grade == Grade::Proved && !self.declined.covers(denial)
        };
        let denials = denials.iter().filter(is_worth_asking);
        offer::first(self.bounds.rights.seen(), command, denials, given).map(Box::new)
    }

    /// Returns the text about denials of a command that exited with 0. It names the denied writes, which may seem to
    /// have succeeded, and the denial about which the person is asked.
    fn despite_success(&self, command: &ShellExec, denials: &[Denial], offer: Option<&Offer>) -> String {
        let standing = self.standing;
        let is_told = |denial: &&Denial| {
            denial.operation == Operation::Write || offer.is_some_and(|offer| offer.denial == **denial)
        };
        let told: Vec<_> = denials.iter().filter(is_told).collect();
        let Some(first) = told.first() else { return String::new() };
        let sentences: Vec<_> = told.iter().map(ToString::to_string).collect();
        let (sentences, rights) = (sentences.join(".\n"), standing.line());
        let hint = if offer.is_some() { "" } else { self.asking_hint(command, first) };
        format!("{hint}\nDespite exit code 0: {sentences}. Your rights: {rights}")
    }

    /// Returns the hint how the model can ask for the denied access; empty if the model cannot ask for it.
    fn asking_hint(&self, command: &ShellExec, denial: &Denial) -> &'static str {
        let in_project = matches!(&denial.object, Object::Path(path) if path.is_within(self.bounds.rights.seen().project()));
        let lacks_network = denial.missing_right.value() == Some(&MissingRight::Network);
        match denial.operation {
            _ if !self.bounds.rights.asks() => "",
            // With write access to another directory, the command would run without a question and fail again.
            Operation::Write
                if in_project
                    && denial.grant.is_some()
                    && command.access != Access::Write
                    && !self.bounds.rights.seen().holds_a_write_root() =>
            {
                WRITE_HINT
            }
            Operation::Network
                if lacks_network
                    && denial.grant.is_some()
                    && !command.network.as_ref().is_some_and(Network::reaches_out) =>
            {
                NETWORK_HINT
            }
            _ => "",
        }
    }
}

/// Returns the result of a read picture: a failure if the picture does not fit into the conversation.
fn result_of_picture(image: &Image, pictures: Pictures) -> CallResult {
    match pictures.left_out.first() {
        Some(cause) => CallResult::not_done(ToolCallStatus::Failed, cause),
        None => CallResult { images: pictures.shown, ..CallResult::answered(image.to_string()) },
    }
}

fn result_of_error(error: &ToolError, standing: &StandingRights) -> CallResult {
    let rendered = Rendered::from(error);
    if let Some(denial) = denied::explain(standing, error) {
        let said = match denial.layer {
            // The worker saw the mode of the mask over the path, and cannot know that from the mode of the path itself.
            Layer::Mask => Rendered::failure("the path is hidden from the sandbox"),
            _ => rendered,
        };
        return explained(vec![denial], said, standing, ObservedBy::Worker);
    }
    let status = match error.kind {
        ToolErrorKind::Interrupted => ToolCallStatus::Interrupted,
        _ => ToolCallStatus::Failed,
    };
    CallResult::not_done(status, rendered.content)
}

/// Returns the result of a denied call: the tool's own text, a sentence for each denial, and the agent's access.
pub(super) fn explained(
    denials: Vec<Denial>,
    said: Rendered,
    standing: &StandingRights,
    observed_by: ObservedBy,
) -> CallResult {
    let rights = standing.line();
    let sentences: Vec<_> = denials.iter().map(Denial::to_string).collect();
    let explanation = format!("\n{}. Your rights: {rights}", sentences.join(".\n"));
    let content = format!("{}{explanation}", said.content);
    let denied = Some(Denials::seen(denials, standing, observed_by));
    let (denial, explanation) = (sentences.into_iter().next(), Some(explanation));
    CallResult { denial, explanation, denied, ..CallResult::not_done(ToolCallStatus::Denied, content) }
}

/// Logs the denials of a result. The log names the supervisor as observer of those by the policy or the broker.
pub(super) fn log_denials(call: CallId, result: &mut CallResult, out: &mut Outbox) {
    let Some(Denials { list, rights, observed_by }) = result.denied.take() else { return };
    for denial in list {
        let seen = denial.layer == Layer::Policy || denial.program.is_some();
        let observed_by = if seen { ObservedBy::Supervisor } else { observed_by };
        let rights = rights.clone().into();
        out.log_seen_by(observed_by, EventKind::Denied { call: Some(call), denial, rights });
    }
}

/// Returns advice how to read the rest of a shortened result; `None` if the rest cannot be read.
fn rest(tool: &ToolCall, output: &ToolOutput) -> Option<String> {
    match output {
        ToolOutput::Command(result) => result.saved.as_ref().map(whole_output),
        _ => how_to_get_less(tool).map(str::to_owned),
    }
}

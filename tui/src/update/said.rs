use ipc::id::{AgentId, EventId};
use ipc::image::Image;

use crate::model::{AgentView, Block, Fold, Look, Model, Part, SaidBefore};
use crate::moment::UiTime;
use crate::text::SafeText;

/// Number of lines from which a message is folded.
const LONG_MESSAGE: usize = 20;

pub(super) struct SaidAt {
    pub id: EventId,
    pub time_ms: u64,
}

pub(super) fn user_said(model: &mut Model, agent: &AgentId, said: SaidAt, text: String, images: &[Image]) {
    let now = model.now;
    let view = model.agents.of(agent);
    let begins = agent.is_top_level() && !view.turn.is_running();
    let folded = model.pasted.iter().position(|pasted| pasted.whole == text);
    let folded = folded.and_then(|at| model.pasted.remove(at)).map(|pasted| pasted.folded);
    let block = user_message(view, now, &text, folded.as_deref(), images);
    if agent.is_top_level() {
        model.rewind.can_undo = false;
        let change = model.changes.next();
        let (SaidAt { id, time_ms }, branch) = (said, model.branch.clone());
        model.rewind.said.push(SaidBefore { id, text, time_ms, branch, block, change });
    }
    if begins {
        model.agents.forget_ended();
        model.plans.forget_ended();
    }
}

/// Shows a message of the user, with long pastes folded as at the prompt.
fn user_message(
    view: &mut AgentView,
    now: UiTime,
    text: &str,
    folded: Option<&str>,
    images: &[Image],
) -> usize {
    if !view.turn.is_running() {
        view.turn.begin(now);
    }
    let said = |text: &str| Part::new(SafeText::prose(text), Look::User);
    let images = images.iter().map(|image| said(&image.to_string()));
    let fold = match folded {
        Some(_) => Fold::Told,
        // A message from an earlier run, whose pastes are unknown.
        None if text.lines().count() > LONG_MESSAGE => Fold::Head(LONG_MESSAGE / 2),
        None => Fold::Never,
    };
    let folded = folded.map(|folded| said(folded).folded(Fold::Stands));
    let whole = Some(text).filter(|text| !text.is_empty()).map(|text| said(text).folded(fold));
    let parts = images.chain(folded).chain(whole);
    view.transcript.push(Block::of(parts.collect()).apart())
}

use crate::model::{Editor, Look, Mode, Model, OwnTurn};

pub(super) fn run(model: &mut Model, line: &str) -> bool {
    let line = line.trim_start();
    let name = line.split_whitespace().next().unwrap_or_default();
    let Some(command) = model.start.own_command(name) else { return false };
    let own = OwnTurn::of(command);
    let text = command.with_arguments(line.strip_prefix(name).unwrap_or_default());
    if !model.agents.shown_id().is_top_level() {
        model.answer(Look::Error, &format!("cannot use /{name}: it works only with the main agent"));
        return true;
    }
    if !model.prompt.is_empty() {
        model
            .answer(Look::Error, &format!("cannot use /{name}: send or delete the text at the prompt first"));
        return true;
    }
    match text {
        Ok(text) => {
            let mut editor = Editor::default();
            match editor.insert(&text) {
                Ok(()) => (model.prompt, model.own, model.mode) = (editor, Some(own), Mode::Insert),
                Err(error) => model.answer(Look::Error, &error.to_string()),
            }
        }
        Err(why) => model.answer(Look::Error, &why),
    }
    true
}

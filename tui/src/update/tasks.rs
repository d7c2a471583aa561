use crate::model::{Block, Look, Model, Part, counted_tasks, task_line};
use crate::text::SafeText;

pub(super) fn show(model: &mut Model) {
    let list = model.agents.shown().tasks.as_ref().filter(|list| !list.tasks.is_empty());
    let Some(list) = list else {
        return model.answer(Look::Notice, "the agent has no list of tasks");
    };
    let mut parts = vec![Part::new(SafeText::line(&counted_tasks(list)), Look::Heading)];
    parts.extend(list.tasks.iter().map(|task| {
        let (line, look) = task_line(task);
        Part::new(SafeText::line(&line), look)
    }));
    model.open_page(Block::of(parts));
}

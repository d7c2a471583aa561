//! A denial that explains itself.

use ipc::denial::{Denial, Grade, Layer};
use ipc::id::CallId;

use crate::model::{Block, Look, Model, Part};
use crate::text::SafeText;

/// The denial card: what was tried, why it was refused, and what would allow it. It claims no more than is known.
pub(super) fn show(model: &mut Model, agent: &str, call: CallId, denial: &Denial, rights: &str) {
    let sure = match (denial.grade, denial.layer) {
        (Grade::Proved, Layer::Policy) => "denied by the policy",
        (Grade::Proved, _) => "denied by the kernel",
        (Grade::Likely, _) => "likely denied",
    };
    let tool = model.calls.get(&call).map(|call| format!("{} ", call.name())).unwrap_or_default();
    let errno = denial.errno.map(|errno| format!(", {}", errno_name(errno))).unwrap_or_default();
    let mut facts = vec![
        ("tried", format!("{} {}   ({}{errno})", denial.operation, denial.object, denial.layer)),
        ("because", format!("rights: {rights}")),
        ("missing", denial.missing_right.clone()),
    ];
    facts.extend(denial.grant.as_ref().map(|grant| ("to allow", grant.clone())));
    facts.extend(
        model.calls.get(&call).and_then(|call| call.command()).map(|command| ("command", command.to_owned())),
    );
    let head = SafeText::line(&format!("✗ {sure}   {tool}#{call}   agent {agent}"));
    let mut parts = vec![Part::new(head, Look::Denial)];
    let fact =
        |(name, value): (&str, String)| Part::new(SafeText::line(&format!("{name:<10}{value}")), Look::Fact);
    parts.extend(facts.into_iter().map(fact));
    model.transcript.push(Block::of(parts));
}

/// The names of the error numbers that a denial has; the others are shown as numbers.
fn errno_name(errno: i32) -> String {
    match errno {
        1 => "EPERM".to_owned(),
        2 => "ENOENT".to_owned(),
        13 => "EACCES".to_owned(),
        18 => "EXDEV".to_owned(),
        30 => "EROFS".to_owned(),
        101 => "ENETUNREACH".to_owned(),
        111 => "ECONNREFUSED".to_owned(),
        number => format!("errno {number}"),
    }
}

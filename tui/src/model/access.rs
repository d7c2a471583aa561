//! The access of the agent in plain words, out of the one line that says its rights.

use ipc::confinement::Tier;

/// The sandbox in plain words, by its tier; nothing while no worker has started.
pub(crate) const fn sandbox(tier: Option<Tier>) -> &'static str {
    match tier {
        None => "",
        Some(Tier::Full) => "sandboxed",
        Some(Tier::Floor | Tier::FloorUnmediated) => "partly sandboxed",
    }
}

/// A line of rights in plain words: `read-only · network off · secrets hidden`.
pub(crate) fn plain(rights: &str) -> String {
    // No path in the line has the separator in it.
    let mut items: Vec<&str> = rights.split(" · ").collect();
    let written = items.first().and_then(|item| item.strip_prefix("rw ")).map(str::to_owned);
    if written.is_some() {
        items.remove(0);
    }
    let mut words = vec![writes(&written.unwrap_or_default())];
    for item in items.iter().skip(1) {
        words.push(
            item.strip_prefix("net ").map_or_else(|| (*item).to_owned(), |net| format!("network {net}")),
        );
    }
    match items.first() {
        Some(read) if read.ends_with(" minus hidden") => words.push("secrets hidden".to_owned()),
        _ => {}
    }
    words.join(" · ")
}

/// The private temp directory and caches are not worth a word.
fn writes(roots: &str) -> String {
    let is_private = |root: &&str| ["$TMPDIR", "caches"].contains(root);
    let (project, others): (Vec<_>, Vec<_>) =
        roots.split(' ').filter(|root| !root.is_empty() && !is_private(root)).partition(|root| *root == ".");
    match (project.is_empty(), others.is_empty()) {
        (true, true) => "read-only".to_owned(),
        (false, true) => "writes in the project".to_owned(),
        (true, false) => format!("writes in {}", others.join(" ")),
        (false, false) => format!("writes in the project, {}", others.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_read_as_plain_words() {
        for (rights, words) in [
            ("rw $TMPDIR caches · ro / minus hidden · net off", "read-only · network off · secrets hidden"),
            (
                "rw . $TMPDIR · ro / minus hidden · net on +host",
                "writes in the project · network on +host · secrets hidden",
            ),
            (
                "rw . $TMPDIR /srv \"/a b\" · ro / · net off · no commands",
                "writes in the project, /srv \"/a b\" · network off · no commands",
            ),
            ("rw /srv · ro / minus hidden · net off", "writes in /srv · network off · secrets hidden"),
            ("ro nothing · net off", "read-only · network off"),
        ] {
            assert_eq!(plain(rights), words, "{rights}");
        }
    }
}

//! Parses a role from a Markdown file: fields between two lines `---`, then the instructions.
//!
//! ```text
//! ---
//! description: Reviews a change for faults.
//! access: read
//! tools: read_file, search_files
//! ---
//! You review …
//! ```

use super::{Role, RoleDraft, RoleField};

/// Line before and after the fields.
const FENCE: &str = "---";

pub fn parse_markdown(name: &str, text: &str) -> Result<Role, String> {
    let mut lines = text.lines().enumerate();
    if lines.next().is_none_or(|(_, first)| first.trim_end() != FENCE) {
        return Err(format!("line 1: expected {FENCE}, then fields such as `description: …`, then {FENCE}"));
    }
    let mut draft = RoleDraft::default();
    for (at, line) in lines.by_ref() {
        match line.trim() {
            FENCE => {
                let prompt = lines.map(|(_, line)| line).collect::<Vec<_>>().join("\n");
                draft
                    .set("prompt", RoleField::Text(prompt))
                    .map_err(|why| format!("the instructions: {why}"))?;
                return draft.finish(name);
            }
            "" => {}
            comment if comment.starts_with('#') => {}
            field => set(&mut draft, field).map_err(|why| format!("line {}: {why}", at + 1))?,
        }
    }
    Err(format!("the list of fields has no end: expected a line {FENCE} after the last field"))
}

fn set(draft: &mut RoleDraft, line: &str) -> Result<(), String> {
    let (field, value) = line.split_once(':').ok_or_else(|| "expected `field: value`".to_owned())?;
    if field == "prompt" {
        return Err(format!("`prompt`: write the instructions below the second {FENCE}"));
    }
    draft
        .set(field, RoleField::Text(unquoted(value.trim()).to_owned()))
        .map_err(|why| format!("`{field}`: {why}"))
}

fn unquoted(value: &str) -> &str {
    let between = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    between('"').or_else(|| between('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVIEWER: &str = "---\ndescription: \"Reviews a change.\"\n# of ours\naccess: read\nmodel: small\n\
        tools: read_file, search_files\nmax_steps: 9\nmax_usd: 0.5\n---\n\nYou review.\nBe brief.\n";

    #[test]
    fn a_file_is_its_fields_and_then_the_instructions() {
        let role = parse_markdown("reviewer", REVIEWER).unwrap();
        assert_eq!(
            role,
            Role {
                name: "reviewer".to_owned(),
                description: "Reviews a change.".to_owned(),
                prompt: "You review.\nBe brief.".to_owned(),
                writes: false,
                model: Some("small".to_owned()),
                tools: Some(vec!["read_file".to_owned(), "search_files".to_owned()]),
                max_steps: Some(9),
                max_usd: Some("0.5".parse().unwrap()),
            }
        );
    }

    #[test]
    fn what_is_wrong_in_a_file_is_said_with_its_line() {
        let wrong = |text: &str| parse_markdown("r", text).unwrap_err();
        insta::assert_snapshot!(
            [
                wrong(""),
                wrong("description: x"),
                wrong("---\ndescription: x"),
                wrong("---\nno field\n---\nx"),
                wrong("---\ncolor: blue\n---\nx"),
                wrong("---\nprompt: x\n---\nx"),
                wrong("---\naccess: all\n---\nx"),
                wrong("---\ntools: ,\n---\nx"),
                wrong("---\nmax_steps: 0\n---\nx"),
                wrong("---\nmax_usd: -1\n---\nx"),
                wrong("---\ndescription: a\u{1b}[2J\n---\nx"),
                wrong("---\ndescription: x\n---\n \n"),
                wrong("---\naccess: read\n---\nx"),
                parse_markdown("a b", REVIEWER).unwrap_err(),
            ]
            .join("\n"),
            @r#"
        line 1: expected ---, then fields such as `description: …`, then ---
        line 1: expected ---, then fields such as `description: …`, then ---
        the list of fields has no end: expected a line --- after the last field
        line 2: expected `field: value`
        line 2: `color`: not a field of a role: expected one of description, prompt, access, model, tools, max_steps, max_usd
        line 2: `prompt`: write the instructions below the second ---
        line 2: `access`: expected "read" or "write"
        line 2: `tools`: expected the names of tools
        line 2: `max_steps`: expected a number of replies, at least 1
        line 2: `max_usd`: expected an amount of US dollars above 0, as in 0.5
        line 2: `description`: expected a text of at most 500 bytes without control characters
        the instructions: expected a text of at most 16384 bytes without control characters
        the role r has no description
        "a b" cannot be the name of a role: expected at most 40 letters, digits, `_` and `-`
        "#
        );
    }

    #[test]
    fn no_bytes_of_a_stranger_panic() {
        let mut random = 7_u64;
        for _ in 0..20_000 {
            let text: String = (0..random % 40)
                .map(|n| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(n + 1);
                    ["---\n", "\n", ":", "a", "\"", "description", "tools: ", "é", "\u{0}"]
                        [(random >> 33) as usize % 9]
                })
                .collect();
            let _ = parse_markdown("r", &text);
            random = random.wrapping_add(1);
        }
    }
}

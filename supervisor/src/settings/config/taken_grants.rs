//! Withdraws approvals to call a removed MCP server's tools without a question. The rest of the text stays unchanged.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml_edit::{Array, Document, Item, TableLike};

use super::mcp::ToolGrant;
use super::parse::{ForProject, parse_users};
use super::value::Value;

/// A withdrawn approval of a tool to run without a question in a project.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TakenGrant {
    pub tool: String,
    pub project: PathBuf,
}

/// Removes the approvals of a server's tools. Returns the text and these approvals; `None` if more would be removed.
pub(super) fn without_grants(
    text: &str,
    file: &Path,
    server: &str,
) -> Option<(String, BTreeSet<TakenGrant>)> {
    without(text, file, |_, grant| grant.server == server)
}

/// Removes the approvals that `is_meant` selects. Returns the text and these; `None` if anything else would be removed.
pub(super) fn without(
    text: &str,
    file: &Path,
    is_meant: impl Fn(&Path, &ToolGrant) -> bool,
) -> Option<(String, BTreeSet<TakenGrant>)> {
    let before = grants(text, file)?;
    let taken: BTreeSet<_> = before
        .iter()
        .filter(|(project, grant)| is_meant(project, grant))
        .map(|(project, grant)| TakenGrant { tool: grant.tool.clone(), project: project.clone() })
        .collect();
    if taken.is_empty() {
        return Some((text.to_owned(), taken));
    }
    let document = Document::parse(text).ok()?;
    let mut cuts = Vec::new();
    for (name, project) in document.get("project")?.as_table_like()?.iter() {
        let is_meant = |grant: &ToolGrant| is_meant(Path::new(name), grant);
        let approvals = project.get("approvals").and_then(Item::as_table_like);
        cuts.extend(approvals.map(|approvals| cuts_of(text, approvals, is_meant)).unwrap_or_default());
    }
    cuts.sort_by_key(|(span, _)| span.start);
    let mut kept = text.to_owned();
    for (span, instead) in cuts.into_iter().rev() {
        kept.replace_range(span, instead);
    }
    let expected: Vec<_> = before.into_iter().filter(|(project, grant)| !is_meant(project, grant)).collect();
    (grants(&kept, file)? == expected).then_some((kept, taken))
}

fn grants(text: &str, file: &Path) -> Option<Vec<(PathBuf, ToolGrant)>> {
    let (_, projects) = parse_users(text, file).ok()?;
    let of_project = |one: &ForProject| {
        let elements = one.layer.value("approvals.tools").map(Value::elements).unwrap_or_default();
        let words = elements.iter().flat_map(|element| &element.words);
        let grants: Vec<_> = words.filter_map(|word| ToolGrant::parse(word.to_str()?)).collect();
        grants.into_iter().map(|grant| (one.project.clone(), grant)).collect::<Vec<_>>()
    };
    Some(projects.iter().flat_map(of_project).collect())
}

/// Returns the parts of a list of tools that must be replaced, each with its new text.
fn cuts_of(
    text: &str,
    approvals: &dyn TableLike,
    is_taken: impl Fn(&ToolGrant) -> bool,
) -> Vec<(Range<usize>, &'static str)> {
    let Some((key, Item::Value(value))) = approvals.get_key_value("tools") else { return Vec::new() };
    let (Some(array), Some(list)) = (value.as_array(), value.span()) else { return Vec::new() };
    let is_kept = |at: usize| {
        let word = array.get(at).and_then(toml_edit::Value::as_str).and_then(ToolGrant::parse);
        !word.is_some_and(|grant| is_taken(&grant))
    };
    let Some(kept) = (0..array.len()).rfind(|at| is_kept(*at)) else {
        let lines = key.span().and_then(|key| whole_lines(text, key.start..list.end));
        return vec![lines.map_or((list, "[]"), |lines| (lines, ""))];
    };
    let start = |at: usize| span(array, at).map(|span| span.start);
    let end = |at: usize| span(array, at).map(|span| span.end);
    let before = (0..kept).filter(|at| !is_kept(*at)).filter_map(|at| Some(start(at)?..start(at + 1)?));
    let behind = || {
        let gap = text.get(end(kept)?..start(kept + 1)?)?;
        let ending = end(array.len() - 1)?;
        // A comment behind the last element that is kept must stay.
        let Some(line) = gap.rfind('\n') else { return Some(end(kept)?..ending) };
        let comma = text.get(ending..).is_some_and(|rest| rest.starts_with(','));
        Some(end(kept)? + line..ending + usize::from(comma))
    };
    let behind = (kept + 1 < array.len()).then(behind).flatten();
    before.chain(behind).map(|span| (span, "")).collect()
}

fn span(array: &Array, at: usize) -> Option<Range<usize>> {
    array.get(at).and_then(toml_edit::Value::span)
}

/// Returns the range of a setting's lines; `None` if they contain anything else. `span` begins at the key's last word.
fn whole_lines(text: &str, span: Range<usize>) -> Option<Range<usize>> {
    let start = text.get(..span.start)?.rfind('\n').map_or(0, |at| at + 1);
    let end = text.get(span.end..)?.find('\n').map_or(text.len(), |at| span.end + at + 1);
    let before: String = text.get(start..span.start)?.split_whitespace().collect();
    let is_key = before.is_empty() || before == "approvals.";
    (is_key && text.get(span.end..end)?.trim().is_empty()).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(text: &str) -> (String, Vec<String>) {
        let digest = "0f".repeat(32);
        let file = Path::new("/c/config.toml");
        let (text, taken) = without_grants(&text.replace("DIGEST", &digest), file, "git").unwrap();
        let taken =
            taken.iter().map(|TakenGrant { tool, project }| format!("{tool} in {}", project.display()));
        (text.replace(&digest, "DIGEST"), taken.collect())
    }

    #[test]
    fn the_grants_of_a_server_go_from_every_project_and_the_rest_stays() {
        let (text, taken) = without(
            "# mine\n[project.\"/a\"]\n# these are fine\napprovals.tools = [\"git/log@DIGEST\", \"other/log@DIGEST\"] # yes\nmode = \"ask\"\n\n\
             [project.\"~/b\"]\nmode = \"ask\" # here\napprovals.tools = [\"git/show@DIGEST\", \"git/log@DIGEST\"]\n\n\
             [project.\"/c\".approvals]\ntools = [\n  # one\n  \"x/1@DIGEST\", # first\n  \"git/2@DIGEST\",\n  \"x/3@DIGEST\",\n  \
             \"git/4@DIGEST\",\n]\nconfirm_shell = true\n",
        );
        assert_eq!(taken, ["2 in /c", "4 in /c", "log in /a", "log in ~/b", "show in ~/b"]);
        insta::assert_snapshot!(text, @r#"
        # mine
        [project."/a"]
        # these are fine
        approvals.tools = ["other/log@DIGEST"] # yes
        mode = "ask"

        [project."~/b"]
        mode = "ask" # here

        [project."/c".approvals]
        tools = [
          # one
          "x/1@DIGEST", # first
          "x/3@DIGEST",
        ]
        confirm_shell = true
        "#);
    }

    #[test]
    fn grants_in_another_form_go_too_and_other_texts_stay() {
        let (text, taken) =
            without("project = { \"/a\" = { approvals = { tools = [\"git/log@DIGEST\"] } } }\n");
        assert_eq!(text, "project = { \"/a\" = { approvals = { tools = [] } } }\n");
        assert_eq!(taken.len(), 1);
        let other =
            "[project.\"/a\"]\napprovals.tools = [\"x/git@DIGEST\", 'x/a']\n[mcp.git]\ncommand = \"x\"\n";
        assert_eq!(without(other), (other.to_owned(), Vec::new()));
        assert!(without_grants("project = 3", Path::new("/c"), "git").is_none());
    }
}

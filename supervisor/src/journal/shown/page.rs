//! The HTML form of a session: one page that runs and loads nothing.

use super::entry::{ShownEntry, ShownPart, ShownText};
use super::html::Html;

/// The style sheet that is embedded in the page.
const STYLE: &str = include_str!("style.css");

pub(crate) fn page(shown: &ShownText) -> String {
    let mut html = Html::default();
    html.raw("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n");
    html.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n");
    html.raw("<meta name=\"referrer\" content=\"no-referrer\"/>\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n");
    html.element("title", &format!("Session {}", shown.session));
    html.raw("\n<style>\n").raw(STYLE).raw("</style></head>\n<body>\n<header><h1>Session ");
    html.text(&shown.session).raw("</h1>\n");
    for warning in &shown.warnings {
        html.raw("<p class=\"warning\">").text(warning).raw("</p>\n");
    }
    html.raw("<dl>\n");
    for (name, value) in &shown.facts {
        html.raw("<dt>").raw(name).raw("</dt>").element("dd", value).raw("\n");
    }
    html.raw("</dl></header>\n<main>\n");
    shown.entries.iter().for_each(|entry| write(&mut html, entry));
    html.raw("</main>\n<footer>\n");
    for total in &shown.totals {
        html.element("p", total).raw("\n");
    }
    html.raw("</footer></body></html>\n");
    html.into_string()
}

fn write(html: &mut Html, entry: &ShownEntry) {
    html.raw("<section class=\"").raw(entry.kind.class()).raw(" level-").number(entry.level);
    html.raw("\"><h2><small>").raw(entry.kind.mark()).raw(" ").text(&entry.time()).raw("</small> ");
    html.text(&entry.title).raw("</h2>\n");
    entry.parts.iter().for_each(|part| write_part(html, part));
    html.raw("</section>\n");
}

fn write_part(html: &mut Html, part: &ShownPart) {
    let label = part.label.as_deref();
    if part.folded {
        html.raw("<details><summary>").text(label.unwrap_or_default()).raw(": ").text(&part.size());
        html.raw("</summary>");
    } else if let Some(label) = label {
        html.element("h3", label);
    }
    html.raw("<pre>").whole(&part.text).raw("</pre>");
    if let Some(left_out) = &part.left_out {
        html.raw("<p class=\"more\">").text(left_out).raw("; --full shows them</p>");
    }
    html.raw(if part.folded { "</details>\n" } else { "\n" });
}

//! Findings as SARIF 2.1.0 for code scanning. Paths are relative to the repository.

use std::collections::BTreeMap;
use std::fmt::Write;

use ipc::text::hexadecimal;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::finding::{Category, Severity};
use super::placed::PlacedFinding;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Returns the SARIF log. A finding at no line of the change becomes a notification, because a result needs a location.
pub(super) fn log(findings: &[PlacedFinding], prefix: &str) -> Value {
    let rules: Vec<_> = Category::ALL.into_iter().map(rule).collect();
    let mut seen = BTreeMap::new();
    let results: Vec<_> = findings
        .iter()
        .filter(|finding| finding.placed)
        .map(|finding| result(finding, prefix, &mut seen))
        .collect();
    let lost: Vec<_> = findings.iter().filter(|finding| !finding.placed).map(notification).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "Bailiwick review",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "automationDetails": { "id": "bailiwick/review/" },
            "columnKind": "unicodeCodePoints",
            "invocations": [{ "executionSuccessful": true, "toolExecutionNotifications": lost }],
            "results": results,
        }],
    })
}

fn rule_id(category: Category) -> String {
    format!("review/{}", category.as_str())
}

fn rule(category: Category) -> Value {
    let tags = if category == Category::Security { vec!["security", "review"] } else { vec!["review"] };
    json!({
        "id": rule_id(category),
        "name": category.as_str(),
        "shortDescription": { "text": category.about() },
        "fullDescription": { "text": category.about() },
        "help": { "text": "A model wrote this finding. Read the code before you act on it." },
        "defaultConfiguration": { "level": "warning" },
        "properties": { "tags": tags, "precision": "medium" },
    })
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low => "note",
    }
}

/// Returns a finding as a result. `seen` counts fingerprints, because two findings can be about the same line.
fn result(placed: &PlacedFinding, prefix: &str, seen: &mut BTreeMap<String, u32>) -> Value {
    let finding = &placed.finding;
    let path = format!("{prefix}{}", finding.file);
    let id = rule_id(finding.category);
    // The fingerprint has the line's text, because its number changes when lines are added above.
    let line = placed.line.as_deref().unwrap_or_default().trim();
    let digest = hexadecimal(&Sha256::digest(format!("{id}\0{path}\0{line}")));
    let count = seen.entry(digest.clone()).or_default();
    *count += 1;
    json!({
        "ruleId": id,
        "ruleIndex": Category::ALL.iter().position(|category| *category == finding.category),
        "level": level(finding.severity),
        "message": { "text": message(placed) },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": uri(&path), "uriBaseId": "%SRCROOT%" },
            "region": { "startLine": finding.first_line, "endLine": finding.last_line },
        }}],
        "partialFingerprints": { "bailiwickFinding/v1": format!("{digest}:{count}") },
        "properties": { "severity": finding.severity, "category": finding.category },
    })
}

fn message(PlacedFinding { finding, .. }: &PlacedFinding) -> String {
    let suggestion = finding.suggestion.as_ref().map(|text| format!("\n\nSuggestion: {text}"));
    format!("{}\n\n{}{}", finding.title, finding.explanation, suggestion.unwrap_or_default())
}

fn notification(placed: &PlacedFinding) -> Value {
    let finding = &placed.finding;
    let place = format!("{}:{}-{}", finding.file, finding.first_line, finding.last_line);
    let text = format!("A finding names lines that do not exist, {place}: {}", message(placed));
    json!({ "level": level(finding.severity), "message": { "text": text } })
}

/// Returns a path as a relative reference (RFC 3986).
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            _ => {
                // A `String` takes every text.
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::super::finding::ReviewFinding;
    use super::*;

    fn at(file: &str, line: u64, placed: bool) -> PlacedFinding {
        let finding = ReviewFinding {
            file: file.to_owned(),
            first_line: line,
            last_line: line + 1,
            severity: Severity::High,
            category: Category::Security,
            title: "Title".to_owned(),
            explanation: "Why".to_owned(),
            suggestion: Some("Mend it".to_owned()),
        };
        PlacedFinding { finding, placed, line: Some("  text  ".to_owned()) }
    }

    /// Members that SARIF 2.1.0 requires (sections 3.13 to 3.58), and those that code scanning of GitHub requires.
    const REQUIRED: [&str; 16] = [
        "/version",
        "/runs/0/tool/driver/name",
        "/runs/0/tool/driver/rules/0/id",
        "/runs/0/tool/driver/rules/0/shortDescription/text",
        "/runs/0/tool/driver/rules/0/fullDescription/text",
        "/runs/0/tool/driver/rules/0/help/text",
        "/runs/0/tool/driver/rules/0/defaultConfiguration/level",
        "/runs/0/invocations/0/executionSuccessful",
        "/runs/0/invocations/0/toolExecutionNotifications/0/message/text",
        "/runs/0/results/0/ruleId",
        "/runs/0/results/0/level",
        "/runs/0/results/0/message/text",
        "/runs/0/results/0/locations/0/physicalLocation/artifactLocation/uri",
        "/runs/0/results/0/locations/0/physicalLocation/region/startLine",
        "/runs/0/results/0/locations/0/physicalLocation/region/endLine",
        "/runs/0/results/0/partialFingerprints/bailiwickFinding~1v1",
    ];

    #[test]
    fn a_log_has_every_required_member_and_only_places_that_exist() {
        let log = log(&[at("a b/ü%.rs", 3, true), at("nowhere", 9, false)], "sub/");
        for pointer in REQUIRED {
            assert!(log.pointer(pointer).is_some_and(|value| !value.is_null()), "{pointer}: {log:#}");
        }
        let run = &log["runs"][0];
        assert_eq!((log["version"].as_str(), run["results"].as_array().unwrap().len()), (Some("2.1.0"), 1));
        let result = &run["results"][0];
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "sub/a%20b/%C3%BC%25.rs");
        assert_eq!((&result["level"], &place["region"]["endLine"]), (&json!("error"), &json!(4)));
        let lost = &run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"];
        assert!(lost.as_str().unwrap().contains("nowhere:9-10: Title"), "{lost}");
    }

    #[test]
    fn a_fingerprint_follows_its_line_and_tells_two_findings_apart() {
        let prints = |findings: &[PlacedFinding]| {
            let log = log(findings, "");
            let results = log["runs"][0]["results"].as_array().unwrap().clone();
            let print = |result: &Value| result["partialFingerprints"]["bailiwickFinding/v1"].clone();
            results.iter().map(print).collect::<Vec<_>>()
        };
        let before = prints(&[at("a", 3, true), at("a", 3, true), at("b", 3, true)]);
        assert_eq!(before, prints(&[at("a", 7, true), at("a", 7, true), at("b", 3, true)]));
        assert!(before[0] != before[1] && before[0] != before[2], "{before:?}");
    }
}

use serde::{Deserialize, Serialize};

/// JSON Schema of the model's answer.
pub(super) const SCHEMA: &str = include_str!("finding.schema.json");

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Review {
    pub(super) summary: String,
    pub(super) findings: Vec<ReviewFinding>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReviewFinding {
    pub(super) file: String,
    pub(super) first_line: u64,
    pub(super) last_line: u64,
    pub(super) severity: Severity,
    pub(super) category: Category,
    pub(super) title: String,
    pub(super) explanation: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) suggestion: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    Low,
    Medium,
    High,
    Critical,
}

impl Severity {
    pub(super) const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Medium, Self::Low];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Category {
    Correctness,
    Security,
    Concurrency,
    Performance,
    Resources,
    Compatibility,
    Tests,
    Maintainability,
}

impl Category {
    pub(super) const ALL: [Self; 8] = [
        Self::Correctness,
        Self::Security,
        Self::Concurrency,
        Self::Performance,
        Self::Resources,
        Self::Compatibility,
        Self::Tests,
        Self::Maintainability,
    ];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Correctness => "correctness",
            Self::Security => "security",
            Self::Concurrency => "concurrency",
            Self::Performance => "performance",
            Self::Resources => "resources",
            Self::Compatibility => "compatibility",
            Self::Tests => "tests",
            Self::Maintainability => "maintainability",
        }
    }

    /// Returns a sentence about the defects of this category.
    pub(super) const fn about(self) -> &'static str {
        match self {
            Self::Correctness => "The code does something else than it is meant to do.",
            Self::Security => "The code lets somebody do something that is not allowed.",
            Self::Concurrency => "The code fails where things happen at the same time or in another order.",
            Self::Performance => "The code needs more time or memory than it has to.",
            Self::Resources => "The code leaks or loses a resource that it has opened.",
            Self::Compatibility => {
                "The change breaks a caller, a file format or another program that worked before."
            }
            Self::Tests => "A test cannot fail, or one is missing for a behaviour that can break.",
            Self::Maintainability => "The code misleads those who change it later.",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_schema_has_the_words_and_fields_that_are_read() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let finding = &schema["properties"]["findings"]["items"];
        let words = |field: &str| finding["properties"][field]["enum"].clone();
        assert_eq!(words("severity"), json!(Severity::ALL));
        assert_eq!(words("severity"), json!(Severity::ALL.map(Severity::as_str)));
        assert_eq!(words("category"), json!(Category::ALL));
        assert_eq!(words("category"), json!(Category::ALL.map(Category::as_str)));
        let all: ReviewFinding = serde_json::from_value(json!({
            "file": "a", "first_line": 1, "last_line": 2, "severity": "low", "category": "tests", "title": "t",
            "explanation": "e", "suggestion": "s",
        }))
        .unwrap();
        let fields = serde_json::to_value(all).unwrap();
        let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&fields), names(&finding["properties"]));
    }
}

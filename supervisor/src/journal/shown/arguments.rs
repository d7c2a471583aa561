//! The arguments of a call, one on each line, as the model wrote them.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Returns the arguments of a call as text; an empty text if the title of the call already contains them.
pub(super) fn arguments(title: &str, input: &RawValue) -> String {
    let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(input.get()) else {
        return input.get().to_owned();
    };
    if arguments.len() == 1
        && arguments.values().all(|value| value.as_str().is_some_and(|text| title.ends_with(text)))
    {
        return String::new();
    }
    arguments.iter().map(|(name, value)| argument(name, value)).collect()
}

fn argument(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) if text.contains('\n') => {
            let lines: Vec<_> = text.lines().map(|line| format!("    {line}")).collect();
            format!("{name}:\n{}\n", lines.join("\n"))
        }
        Value::String(text) => format!("{name}: {text}\n"),
        other => format!("{name}: {other}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(title: &str, input: &str) -> String {
        arguments(title, &RawValue::from_string(input.to_owned()).unwrap())
    }

    #[test]
    fn arguments_are_lines_and_what_the_title_says_is_not_repeated() {
        assert_eq!(of("read a.txt", r#"{"path":"a.txt"}"#), "");
        assert_eq!(of("read a.txt", r#"{"path":"b.txt"}"#), "path: b.txt\n");
        let of_several = of("write a", r#"{"path":"a","content":"x\ny\n","more":[1,true]}"#);
        assert_eq!(of_several, "path: a\ncontent:\n    x\n    y\nmore: [1,true]\n");
        assert_eq!(of("run", "[1]"), "[1]");
    }
}

use std::time::{Duration, Instant};

use super::*;

const PERSON: &str = r#"{
  "type": "object",
  "required": ["name", "age"],
  "properties": {
    "name": { "type": "string", "pattern": "^[A-Z]" },
    "age": { "type": "integer", "minimum": 0 }
  },
  "additionalProperties": false
}"#;

fn schema(text: &str) -> Result<AnswerSchema, String> {
    AnswerSchema::compile(Path::new("s.json"), text).map_err(|error| error.to_string())
}

fn fault(text: &str) -> String {
    schema(text).expect_err(text)
}

#[test]
fn an_answer_that_fits_is_taken_bare_or_in_one_fence() {
    let schema = schema(PERSON).unwrap();
    assert!(schema.demand().contains(r#""required":["name","age"]"#));
    for reply in [
        r#"{"name":"Ada","age":36}"#,
        "\n{\n  \"name\": \"Ada\",\n  \"age\": 36\n}\n",
        "```json\n{\"name\":\"Ada\",\"age\":36}\n```",
        "```\n{\"name\":\"Ada\",\"age\":36}\n```\n",
    ] {
        let value = schema.check(reply).unwrap();
        assert_eq!(value.to_string(), r#"{"name":"Ada","age":36}"#, "{reply}");
    }
}

#[test]
fn an_answer_that_does_not_fit_is_told_each_fault_with_its_place() {
    let schema = schema(PERSON).unwrap();
    insta::assert_snapshot!(
        schema.check(r#"{"name":"ada","age":-1,"x":0}"#).unwrap_err(),
        @r#"
    /name: "ada" does not match "^[A-Z]"
    /age: -1 is less than the minimum of 0
    Additional properties are not allowed ('x' was unexpected)
    "#
    );
    for reply in [
        "",
        "Here it is: {\"name\":\"Ada\",\"age\":36}",
        "{\"name\":\"Ada\",\"age\":36} {}",
        "```json\n{\"name\":\"Ada\",\"age\":36}\n```\n```json\n{}\n```",
        "{\"name\":\"Ada\",\"age\":1e999}",
    ] {
        assert!(schema.check(reply).unwrap_err().starts_with("the answer is not JSON"), "{reply}");
    }
}

#[test]
fn a_value_that_is_not_listed_is_told_with_the_whole_list() {
    let schema = schema(r#"{"properties":{"grade":{"enum":["critical","high","medium","low"]}}}"#).unwrap();
    let said = schema.check(r#"{"grade":"warning"}"#).unwrap_err();
    assert_eq!(said, r#"/grade: the value is not one of ["critical","high","medium","low"]: "warning""#);
}

#[test]
fn faults_are_bounded_whatever_the_answer_is() {
    let schema = schema(r#"{"items":{"type":"string"}}"#).unwrap();
    let faults = schema.check(&format!("[{}1]", "1,".repeat(10_000))).unwrap_err();
    assert_eq!(faults.lines().count(), MAX_FAULTS);
    let faults = schema.check(&format!("[[\"{}\"]]", "é".repeat(10_000))).unwrap_err();
    assert_eq!(faults.chars().count(), MAX_FAULT + 1);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(schema.check(&deep).unwrap_err().contains("recursion limit"));
    let long = format!("\"{}\"", "x".repeat(MAX_ANSWER));
    assert_eq!(schema.check(&long).unwrap_err(), "the answer has more than 1 MiB");
}

#[test]
fn a_broken_schema_is_told_with_its_line() {
    let syntax = fault("{\n  \"type\": \"object\",\n}");
    assert!(syntax.starts_with("--schema: `s.json` is not JSON:") && syntax.contains("line 3"), "{syntax}");
    assert!(fault("[]").contains("line 1: a schema has to be a JSON object"));
    let kind = fault("{\n  \"properties\": {\n    \"a/b\": [\n      7\n    ]\n  }\n}");
    assert!(kind.contains("`s.json`, line 3: "), "{kind}");
    let kind = fault("{\n  \"anyOf\": [\n    {},\n    { \"type\": \"objekt\" }\n  ]\n}");
    assert!(kind.contains("`s.json`, line 4: "), "{kind}");
    let kind = fault("{\n  \"$schema\": \"https://example.com/other\"\n}");
    assert!(kind.contains("nknown meta-schema"), "{kind}");
}

#[test]
fn nothing_outside_of_the_schema_is_referred_to() {
    let refers =
        |uri: &str| format!("{{\n  \"properties\": {{\n    \"a\": {{ \"$ref\": \"{uri}\" }}\n  }}\n}}");
    for uri in
        ["https://example.com/a.json", "file:///etc/passwd", "http://127.0.0.1:1/x", "a.json", "../a.json#/b"]
    {
        let said = fault(&refers(uri));
        assert!(said.contains("refers to another file"), "{said}");
    }
    let said = fault(&refers("https://example.com/a.json"));
    assert!(said.contains("line 3: `https://example.com/a.json`"), "{said}");
    let within = schema(r##"{"$defs":{"n":{"type":"integer"}},"items":{"$ref":"#/$defs/n"}}"##).unwrap();
    assert!(within.check("[1,2]").is_ok() && within.check("[1,\"2\"]").is_err());
    assert!(fault(r##"{"$ref":"#/$defs/none"}"##).contains("s.json"));
}

#[test]
fn schemas_that_refer_to_themselves_come_to_an_end() {
    for text in [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"not":{"$ref":"#"}}"##,
        r##"{"$dynamicRef":"#a","$dynamicAnchor":"a"}"##,
        r##"{"items":{"$ref":"#"}}"##,
    ] {
        let schema = schema(text).unwrap();
        let nested = format!("{}{}", "[".repeat(120), "]".repeat(120));
        let is_denied = text.contains("not");
        assert_eq!(
            (schema.check(&nested).is_err(), schema.check("1").is_err()),
            (is_denied, is_denied),
            "{text}"
        );
    }
}

#[test]
fn patterns_take_linear_time() {
    for pattern in ["(?=a)", "(a)\\\\1", "^(a{1,1000}){1,1000}$"] {
        let said = fault(&format!("{{\n\"pattern\": \"{pattern}\"\n}}"));
        assert!(said.contains("line 2: ") && said.contains("cannot have look-around"), "{said}");
    }
    let schema = schema(r#"{"pattern":"^(a+)+$"}"#).unwrap();
    let began = Instant::now();
    assert!(schema.check(&format!("\"{}!\"", "a".repeat(100_000))).is_err());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn only_a_regular_file_of_a_bounded_size_is_read() {
    let temp = tempfile::tempdir().unwrap();
    let place = |name: &str| temp.path().join(name);
    std::fs::write(place("good"), PERSON).unwrap();
    assert!(AnswerSchema::read(&place("good")).is_ok());
    std::fs::write(place("long"), format!("{PERSON}{}", " ".repeat(MAX_BYTES))).unwrap();
    std::fs::write(place("bytes"), b"{\"a\":\"\xff\"}").unwrap();
    nix::unistd::mkfifo(&place("fifo"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    for (name, part) in [
        ("long", "has more than 64 KiB"),
        ("bytes", "invalid utf-8"),
        ("fifo", "is not a regular file"),
        ("", "is not a regular file"),
        ("missing", "cannot read"),
    ] {
        let error = AnswerSchema::read(&place(name)).unwrap_err().to_string();
        assert!(error.starts_with("--schema: ") && error.contains(part), "{name}: {error}");
    }
}

use std::collections::BTreeSet;

use super::*;

/// Returns an example for each rule. The secrets are assembled at run time, so that no scanner finds them in this file.
fn examples() -> Vec<(&'static str, String)> {
    let x = |count: usize| "aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xY".chars().cycle().take(count).collect::<String>();
    let hex = |count: usize| "0123456789abcdef".chars().cycle().take(count).collect::<String>();
    let upper = |count: usize| "ABCDEFGH234567JK".chars().cycle().take(count).collect::<String>();
    let letters = |count: usize| "abcdefghijklmnop".chars().cycle().take(count).collect::<String>();
    vec![
        ("aws-access-token", format!("AKIA{}", upper(16))),
        ("aws-secret-access-key", format!("AWS_SECRET_ACCESS_KEY={}", x(40))),
        ("anthropic-api-key", format!("sk-ant-api03-{}", x(40))),
        ("openai-api-key", format!("sk-proj-{}", x(40))),
        ("openai-api-key", format!("sk-{}T3BlbkFJ{}", x(20), x(20))),
        ("openrouter-api-key", format!("sk-or-v1-{}", hex(64))),
        ("github-token", format!("ghp_{}", x(36))),
        ("github-fine-grained-pat", format!("github_pat_{}", x(60))),
        ("gitlab-token", format!("glpat-{}", x(20))),
        ("slack-token", format!("xoxb-1234567890-{}", x(24))),
        ("slack-webhook-url", format!("https://hooks.slack.com/services/T0/B0/{}", x(44))),
        ("stripe-access-token", format!("sk_live_{}", x(24))),
        ("gcp-api-key", format!("AIza{}", x(35))),
        ("gcp-access-token", format!("ya29.{}", x(40))),
        ("gcp-oauth-client-secret", format!("GOCSPX-{}", x(28))),
        ("azure-storage-key", format!("AccountKey={}==", x(86))),
        ("azure-ad-client-secret", format!("abc8Q~{}", x(34))),
        ("private-key", format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", x(64))),
        ("private-key", format!("-----BEGIN PRIVATE KEY-----\n{}", x(64))),
        ("jwt", format!("eyJ{}.eyJ{}.{}", x(20), x(30), x(40))),
        ("npm-access-token", format!("npm_{}", x(36))),
        ("pypi-upload-token", format!("pypi-AgE{}", x(60))),
        ("crates-io-token", format!("cio{}", x(32))),
        ("rubygems-api-token", format!("rubygems_{}", hex(48))),
        ("dockerhub-token", format!("dckr_pat_{}", x(27))),
        ("huggingface-access-token", format!("hf_{}", letters(34))),
        ("groq-api-key", format!("gsk_{}", x(52))),
        ("xai-api-key", format!("xai-{}", x(80))),
        ("perplexity-api-key", format!("pplx-{}", x(48))),
        ("replicate-api-token", format!("r8_{}", x(37))),
        ("sendgrid-api-token", format!("SG.{}.{}", x(22), x(43))),
        ("twilio-api-key", format!("SK{}", hex(32))),
        ("digitalocean-token", format!("dop_v1_{}", hex(64))),
        ("databricks-api-token", format!("dapi{}", hex(32))),
        ("vault-token", format!("hvs.{}", x(90))),
        ("terraform-api-token", format!("{}.atlasv1.{}", x(14), x(67))),
        ("linear-api-key", format!("lin_api_{}", x(40))),
        ("notion-api-token", format!("ntn_{}", x(46))),
        ("postman-api-token", format!("PMAK-{}-{}", hex(24), hex(34))),
        ("shopify-access-token", format!("shpat_{}", hex(32))),
        ("newrelic-api-key", format!("NRAK-{}", upper(27))),
        ("grafana-token", format!("glsa_{}", x(41))),
        ("telegram-bot-token", format!("123456789:AA{}", x(33))),
        ("age-secret-key", format!("AGE-SECRET-KEY-1{}", upper(58))),
        ("basic-auth-in-url", "postgres://ann:hunter2@db/x".to_owned()),
        ("authorization-header", format!("Authorization: Bearer {}", x(30))),
        ("generic-api-key", format!("my_api_key: \"{}\"", x(24))),
        ("generic-api-key", format!("{{\\\"password\\\": \\\"{}\\\"}}", x(16))),
    ]
}

#[test]
fn every_rule_has_a_source_and_finds_its_secret() {
    let mut tried = BTreeSet::new();
    for (name, example) in examples() {
        let mut redaction = Redaction::new().unwrap();
        let text = format!("before {example} after");
        let without = redaction.text(&text);
        assert!(without.contains(&format!("[redacted: {name}]")), "{name}: {example}: {without}");
        assert!(without.starts_with("before "), "{without}");
        let tail: String = example.chars().rev().take(8).collect();
        let tail: String = tail.chars().rev().collect();
        assert!(
            !without.contains(&tail) || name == "basic-auth-in-url" || tail.ends_with('}'),
            "{name}: {without}"
        );
        tried.insert(name);
    }
    let list = include_str!("rules.txt");
    let mut names = BTreeSet::new();
    let lines: Vec<_> = list.lines().filter(|line| !line.is_empty()).collect();
    for pair in lines.windows(2) {
        let [above, line] = pair else { unreachable!() };
        if !line.starts_with('#') {
            assert!(above.starts_with("# "), "no source: {line}");
            names.insert(line.split("  ").next().unwrap());
        }
    }
    assert_eq!(names, tried);
}

#[test]
fn what_is_no_secret_stays() {
    let digest = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9";
    let words = "the token of a session is not in the log; password: required; secret = configuration-value";
    let json = r#"{"max_tokens":4096,"tokens_before":12,"usage":{"cache_read":3}}"#;
    for text in
        [digest, words, json, "https://example.org:8080/a@b", "sk-short", "npm_install", "let key = value;"]
    {
        let mut redaction = Redaction::new().unwrap();
        assert_eq!(redaction.text(text), text);
        assert_eq!(redaction.line(json), json);
        assert!(redaction.found().is_empty(), "{text}");
    }
}

#[test]
fn a_line_changes_in_its_strings_alone_and_stays_json() {
    let secret = format!("sk-ant-{}", "aB3dE6fG9h".repeat(4));
    let line = format!(
        r#"{{"a" : 1.0,"b":"x\u003d{secret}\"\\","password":"hunter2-Hunter2-9xQz","c":["{secret}",{{"{secret}":null}}],"d":"\ud83e {secret}"}}"#
    );
    let mut redaction = Redaction::new().unwrap();
    let without = redaction.line(&line).into_owned();
    assert!(!without.contains("aB3dE6") && !without.contains("hunter2"), "{without}");
    assert!(
        without.starts_with(
            r#"{"a" : 1.0,"b":"x=[redacted: anthropic-api-key]\"\\","password":"[redacted: generic-api-key]""#
        ),
        "{without}"
    );
    assert_eq!(redaction.found().get("anthropic-api-key"), Some(&4));
    let escaped = r#"{"k":"-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\nafter"}"#;
    assert_eq!(redaction.line(escaped), r#"{"k":"[redacted: private-key]\nafter"}"#);
    assert!(serde_json::from_str::<serde_json::Value>(&redaction.line(escaped)).is_ok());
    // A text that is cut off is not JSON, and causes no panic.
    for cut in 0..line.len() {
        if line.is_char_boundary(cut) {
            let _ = redaction.line(&line[..cut]);
        }
    }
}

use protocol::plan::{Acceptance, OnFailure, Plan, PlanRights, PlanStep};

use super::super::{Document, digest, print};
use super::{WHOLE, plan, with_step};

fn whole() -> Plan {
    let command = |text: &str| Acceptance::Command(text.into());
    let first = PlanStep {
        title: "Measure it".into(),
        description:
            "Run the bench:\n\n```sh\n### 2. not a heading\njust bench\n```\n\n#### Details\n> as before"
                .into(),
        files: vec!["src/cache.rs".into(), "benches/a.rs".into()],
        acceptance: vec![
            command("cargo test -p cache"),
            command("cd a\n  ./b \"`c`\""),
            Acceptance::Criterion("The manual mentions it,\nin two lines".into()),
        ],
    };
    Plan {
        title: "Make the cache smaller".into(),
        context: "The cache grows.\n\nIt must not.".into(),
        rights: Some(PlanRights {
            write: vec!["src".into(), "/srv/a b".into()],
            network: true,
            servers: vec!["docs".into()],
            tools: vec!["git__log".into()],
        }),
        on_failure: Some(OnFailure::Replan),
        steps: vec![first, PlanStep { title: "Write it down".into(), ..PlanStep::default() }],
    }
}

#[test]
fn every_field_is_read() {
    assert_eq!(plan(WHOLE), whole());
    assert_eq!(plan(&WHOLE.replace('\n', "\r\n")), whole());
    assert_eq!(plan(&format!("\u{feff}{WHOLE}")), whole());
    assert_eq!(Document::parse(WHOLE).unwrap().to_string(), WHOLE);
}

#[test]
fn the_canonical_file_is_plain_markdown() {
    insta::assert_snapshot!(print(&whole()).unwrap(), @r#"
    # Make the cache smaller

    ## Context
    The cache grows.

    It must not.

    ## Rights
    - write: src
    - write: /srv/a b
    - server: docs
    - tool: git__log
    - network: on

    ## On failure
    replan

    ## Steps

    ### 1. Measure it
    Run the bench:

    ```sh
    ### 2. not a heading
    just bench
    ```

    #### Details
    > as before

    Files:
    - `src/cache.rs`
    - `benches/a.rs`

    Acceptance:
    - `cargo test -p cache`
    - ```
      cd a
        ./b "`c`"
      ```
    - The manual mentions it,
      in two lines

    ### 2. Write it down
    "#);
}

#[test]
fn an_item_is_a_command_only_if_it_is_code_and_nothing_else() {
    let command = |text: &str| Acceptance::Command(text.into());
    let criterion = |text: &str| Acceptance::Criterion(text.into());
    for (item, expected) in [
        ("- `a`", command("a")),
        ("* `` a`b ``", command("a`b")),
        ("+   ` a`", command(" a")),
        ("- `` ` ``", command("`")),
        ("- ~~~\n  a\n\n   b\n  ~~~", command("a\n\n b")),
        ("- ````\n  ```\n  ````", command("```")),
        ("- `a` passes", criterion("`a` passes")),
        ("- `a` and `b`", criterion("`a` and `b`")),
        ("- `a", criterion("`a")),
        ("- ```\n  a\n  ```\n  passes", criterion("```\na\n```\npasses")),
        ("- See:\n  - `a`", criterion("See:\n- `a`")),
        ("- x\n\n  y", criterion("x\n\ny")),
        ("- \\`a`", criterion("\\`a`")),
    ] {
        let read = plan(&with_step(&format!("Acceptance:\n{item}")));
        assert_eq!(read.steps[0].acceptance, [expected], "{item}");
    }
}

#[test]
fn comments_are_in_no_field() {
    let text = "<!-- a -->\n# T\n<!--\n## Steps\n-->\n## Context\nx\n<!-- y\n# no\n-->\nz\n## Steps\n### 1. S\n<!-- d -->\n\
        Acceptance:\n<!-- - `no` -->\n- `a`\n  <!-- b -->\n- c <!-- stays -->\n## Notes\n### 9. anything\n";
    let read = plan(text);
    assert_eq!((read.context.as_str(), read.steps.len()), ("x\nz", 1));
    let (command, criterion) =
        (Acceptance::Command("a".into()), Acceptance::Criterion("c <!-- stays -->".into()));
    assert_eq!(read.steps[0].acceptance, [command, criterion]);
    assert_eq!(read.steps[0].description, "");
}

#[test]
fn a_digest_is_of_the_bytes() {
    assert_eq!(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_ne!(digest("a\n"), digest("a\r\n"));
}

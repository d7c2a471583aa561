use proptest::prelude::*;
use protocol::plan::{Acceptance, OnFailure, Plan, PlanRights, PlanStep};

use super::super::{Document, print};
use super::WHOLE;

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z #`>*_~|<!:.-]{1,8}",
        Just("`".to_owned()),
        Just("``` ".to_owned()),
        Just("### 2. x".to_owned()),
        Just("- ".to_owned()),
        Just("Files:".to_owned()),
        Just("grüße 日本 🦀".to_owned()),
        Just("\\".to_owned()),
        Just("  ".to_owned()),
        Just("\t".to_owned()),
    ]
}

fn line() -> impl Strategy<Value = String> {
    let line = proptest::collection::vec(piece(), 1..5).prop_map(|pieces| pieces.concat());
    line.prop_filter("blank", |line| !line.trim().is_empty())
}

fn trimmed() -> impl Strategy<Value = String> {
    line().prop_map(|line| line.trim().to_owned())
}

fn prose() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        line().prop_map(|line| format!("a{line}")),
        Just(String::new()),
        Just("## ".to_owned() + "#")
    ];
    let word = word.prop_map(|line| if line == "## #" { "#### Deeper".to_owned() } else { line });
    proptest::collection::vec(word, 0..5).prop_map(|lines| lines.join("\n").trim_matches('\n').to_owned())
}

fn command() -> impl Strategy<Value = String> {
    let command = proptest::collection::vec(prop_oneof![4 => line(), 1 => "[ ]{0,3}"], 1..4);
    command.prop_map(|lines| lines.join("\n")).prop_filter("empty", |text| !text.trim().is_empty())
}

fn acceptance() -> impl Strategy<Value = Acceptance> {
    let criterion = trimmed().prop_map(|text| Acceptance::Criterion(format!("It: {text}")));
    prop_oneof![command().prop_map(Acceptance::Command), criterion]
}

fn step() -> impl Strategy<Value = PlanStep> {
    let lists = (proptest::collection::vec(trimmed(), 0..3), proptest::collection::vec(acceptance(), 0..4));
    (trimmed(), prose(), lists).prop_map(|(title, description, (files, acceptance))| PlanStep {
        title,
        description,
        files: files.into_iter().map(|file| format!("a{file}").replace('\t', " ")).collect(),
        acceptance,
    })
}

fn rights() -> impl Strategy<Value = PlanRights> {
    let write = proptest::collection::vec(line(), 0..3).prop_map(|paths| {
        let visible = |path: String| path.replace('\t', " ").replace("..", ".");
        paths.into_iter().map(visible).collect()
    });
    let names = || proptest::collection::vec("[a-z][a-z_-]{0,8}", 0..3);
    (write, any::<bool>(), names(), names()).prop_map(|(write, network, servers, tools)| PlanRights {
        write,
        network,
        servers,
        tools,
    })
}

fn plans() -> impl Strategy<Value = Plan> {
    let words = prop_oneof![Just(OnFailure::Stop), Just(OnFailure::Retry), Just(OnFailure::Replan)];
    let settings = (proptest::option::of(rights()), proptest::option::of(words));
    (trimmed(), prose(), settings, proptest::collection::vec(step(), 1..5)).prop_map(
        |(title, context, (rights, on_failure), steps)| Plan { title, context, rights, on_failure, steps },
    )
}

proptest! {
    #[test]
    fn a_printed_plan_is_read_back(plan in plans()) {
        let text = print(&plan).unwrap();
        let document = Document::parse(&text).unwrap();
        prop_assert_eq!(document.plan(), &plan);
        prop_assert_eq!(Document::of(&plan).unwrap(), document);
    }

    #[test]
    fn an_edit_gives_the_plan_and_keeps_the_rest(old in plans(), new in plans(), crlf in any::<bool>()) {
        let notes = "<!-- first -->\n";
        let rest = "\n## Anything else  \n*  kept*\t\n<!-- last -->";
        let text = format!("{notes}{}{rest}", print(&old).unwrap());
        let text = if crlf { text.replace('\n', "\r\n") } else { text };
        let edited = Document::parse(&text).unwrap().with_plan(&new).unwrap();
        prop_assert_eq!(edited.plan(), &new);
        let (notes, rest) =
            if crlf { (notes.replace('\n', "\r\n"), rest.replace('\n', "\r\n")) } else { (notes.into(), rest.into()) };
        prop_assert!(edited.source().starts_with(&notes) && edited.source().ends_with(&rest), "{}", edited);
        prop_assert_eq!(edited.source().matches('\n').count() * usize::from(crlf), edited.source().matches("\r\n").count());
        let back = edited.with_plan(&old).unwrap();
        prop_assert_eq!(back.plan(), &old);
    }

    #[test]
    fn steps_in_any_order_lose_no_comment(old in plans(), order in proptest::collection::vec(any::<prop::sample::Index>(), 8), crlf in any::<bool>()) {
        let text = print(&old).unwrap();
        let mut lines = Vec::new();
        for line in text.lines() {
            lines.push(line.to_owned());
            if line.starts_with("### ") {
                lines.push(format!("<!-- {} -->", lines.len()));
            }
        }
        let text = lines.join(if crlf { "\r\n" } else { "\n" });
        let document = Document::parse(&text);
        prop_assume!(document.as_ref().is_ok_and(|document| document.plan() == &old));
        let mut new = old.clone();
        for pair in order.chunks(2) {
            let [one, other] = [pair[0], pair[1]].map(|at| at.index(new.steps.len()));
            new.steps.swap(one, other);
        }
        let edited = document.unwrap().with_plan(&new).unwrap();
        prop_assert_eq!(edited.plan(), &new);
        let comments = |text: &str| text.matches("<!-- ").count();
        prop_assert_eq!(comments(edited.source()), comments(&text));
    }

    #[test]
    fn any_plan_takes_the_place_of_a_handwritten_one(new in plans()) {
        let edited = Document::parse(WHOLE).unwrap().with_plan(&new).unwrap();
        prop_assert_eq!(edited.plan(), &new);
    }
}

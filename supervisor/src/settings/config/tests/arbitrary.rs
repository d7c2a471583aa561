//! Property tests with arbitrary project files.

use ipc::rights::{Execution, Rights};
use proptest::prelude::*;

use super::*;
use crate::settings::config::{KEYS, Kind, ProjectFile, ProjectMay, TrustQuestion};

/// Returns a strategy for TOML values of a kind.
fn fitting(kind: Kind) -> BoxedStrategy<String> {
    let list = |item: BoxedStrategy<String>| {
        proptest::collection::vec(item, 0..4).prop_map(|items| format!("[{}]", items.join(", "))).boxed()
    };
    let quoted = |words: &'static [&'static str]| {
        proptest::sample::select(words).prop_map(|word| format!("{word:?}")).boxed()
    };
    let word = || "[a-z]{1,3}".prop_map(|word| format!("{word:?}")).boxed();
    match kind {
        Kind::Text => word(),
        Kind::Address => "[a-z]{1,8}".prop_map(|host| format!("\"https://{host}\"")).boxed(),
        Kind::Choice(words) => quoted(words),
        Kind::Choices(words) => list(quoted(words)),
        Kind::Names => list(word()),
        Kind::Paths => list("/?[ab](/[ab]){0,2}".prop_map(|path| format!("{path:?}")).boxed()),
        Kind::Variables => list("[A-C](=[a-b])?".prop_map(|setting| format!("{setting:?}")).boxed()),
        Kind::Commands => list(quoted(&["make", "ls"]).prop_map(|word| format!("[{word}, \"x\"]")).boxed()),
        Kind::Count { least, most } => {
            (least..=most.min(least + 2000)).prop_map(|number| number.to_string()).boxed()
        }
        Kind::Time => (1..2_000_000u32).prop_map(|ms| format!("{}.{:03}", ms / 1000, ms % 1000)).boxed(),
        Kind::Amount => (1..2000u32).prop_map(|cents| format!("{}.{:02}", cents / 100, cents % 100)).boxed(),
        Kind::Network => {
            let hosts = list("[ab]\\.[ab](:8[01])?".prop_map(|host| format!("{host:?}")).boxed());
            prop_oneof![Just("\"off\"".to_owned()), hosts].boxed()
        }
        Kind::Switch => any::<bool>().prop_map(|on| on.to_string()).boxed(),
    }
}

/// Returns a strategy for files that each set some of the keys.
fn file(whose: FileOwner) -> BoxedStrategy<String> {
    let may = move |key: &&crate::settings::config::Key| {
        whose == FileOwner::Users || key.project != ProjectMay::Never
    };
    let lines = KEYS.iter().filter(may).map(|key| {
        let line = fitting(key.kind).prop_map(|value| format!("{} = {value}\n", key.name));
        proptest::option::of(line).boxed()
    });
    lines.collect::<Vec<_>>().prop_map(|lines| lines.into_iter().flatten().collect()).boxed()
}

/// Returns the access that settings give. Paths stay as they were written.
fn rights(effective: &Effective) -> Rights {
    let paths = |elements: &[crate::settings::config::Element]| {
        elements.iter().map(|element| Path::new("/p").join(element.first()).into()).collect()
    };
    Rights {
        read: vec!["/".into()],
        hidden: paths(effective.hide()),
        write: paths(effective.write()),
        protected: paths(effective.protect()),
        net: effective.net(),
        reach: effective.reach(),
        sockets: paths(effective.sockets()),
        exec: Execution::Allowed,
        limits: effective.call_limits(),
    }
    .normalised()
}

/// Checks that `narrow` never gives more access than `wide`. Only keys that restrict agents may differ.
fn is_covered(wide: &Effective, narrow: &Effective) -> Result<(), TestCaseError> {
    prop_assert!(rights(wide).covers(&rights(narrow)), "{wide:?}\n{narrow:?}");
    prop_assert_eq!(
        (wide.model(), wide.base_url(), wide.env(), wide.approvals(true).preapproved),
        (narrow.model(), narrow.base_url(), narrow.env(), narrow.approvals(true).preapproved)
    );
    let width = |effective: &Effective, name: &str| {
        let settled = effective.get(name).unwrap();
        settled.value.as_ref().map_or(u64::MAX, |value| value.width(settled.key.kind))
    };
    for key in KEYS.iter().filter(|key| key.project == ProjectMay::Lower) {
        prop_assert!(width(narrow, key.name) <= width(wide, key.name), "{}", key.name);
    }
    Ok(())
}

proptest! {
    #[test]
    fn an_untrusted_project_never_widens_anything(of_user in file(FileOwner::Users), of_project in file(FileOwner::Projects), flags in file(FileOwner::Users)) {
        let (flags, of_user, of_project) = (user(&flags), user(&of_user), project(&of_project));
        let without = merged(&flags, &of_user, &Layer::default(), false);
        let with = merged(&flags, &of_user, &of_project, false);
        is_covered(&without, &with)?;
    }

    #[test]
    fn what_trust_enables_was_listed(of_user in file(FileOwner::Users), text in file(FileOwner::Projects)) {
        let (of_user, layer) = (user(&of_user), project(&text));
        let digest = Some(crate::settings::config::FileDigest::of(text.as_bytes()));
        let read = ProjectFile { project: "/p".into(), layer: layer.clone(), digest, has_foreign: false, servers: Vec::new() };
        let none = Layer::default();
        let with = merged(&none, &of_user, &layer, true);
        let without = merged(&none, &of_user, &layer, false);
        let listed = TrustQuestion::about(&read).map(|question| question.lines.join("\n")).unwrap_or_default();
        for ignored in &without.ignored {
            prop_assert!(listed.contains(&ignored.to_string()), "{ignored} in {listed}");
        }
        // If the person is asked nothing, trust changes nothing.
        if listed.is_empty() {
            prop_assert_eq!(with.settled, without.settled);
        }
    }

    #[test]
    fn garbage_is_an_error_and_never_a_panic(text in "\\PC*|[\\[\\]{}=.\"'#a-z \n\\\\0-9,]{0,80}") {
        let _ = parse(&text, Path::new("x"), FileOwner::Projects);
    }

    #[test]
    fn a_known_key_with_any_value_is_no_panic(index in 0..KEYS.len(), value in "[\\[\\]{}\"a-z0-9,/=. -]{0,40}") {
        let _ = parse(&format!("{} = {value}", KEYS[index].name), Path::new("x"), FileOwner::Users);
    }
}

#[test]
fn nesting_without_end_is_an_error() {
    for text in [
        "[".repeat(60_000),
        format!("a = {}", "[".repeat(60_000)),
        "a.".repeat(30_000),
        format!("a = {}", "{b=".repeat(20_000)),
    ] {
        assert!(parse(&text, Path::new("x"), FileOwner::Projects).is_err());
    }
}

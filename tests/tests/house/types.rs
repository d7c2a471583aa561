//! Tests that a type is read in few files: the methods of each type of the product are in at most four.

use std::collections::{BTreeMap, BTreeSet};

use crate::prose::sources;

const MOST_FILES: usize = 4;

/// Returns the name of the type of an inherent `impl` block, from the block's first line.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(generic) => after_generics(generic)?,
        None => rest,
    };
    let rest = rest.strip_prefix(' ')?;
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    let is_type = name.starts_with(|c: char| c.is_ascii_uppercase());
    (is_type && !rest.contains(" for ") && !rest.contains("::")).then_some(name)
}

/// Returns the text after a list of generics. The given text begins after the list's `<`.
fn after_generics(text: &str) -> Option<&str> {
    let mut depth = 1;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[at + 1..]);
        }
        before = c;
    }
    None
}

#[test]
fn methods_of_each_type_are_in_at_most_four_files() {
    let sources = sources();
    let mut places = BTreeMap::<_, BTreeSet<&str>>::new();
    for (path, code) in &sources {
        let name = path.split_once("/src/").map(|(name, _)| name);
        for implemented in code.lines().filter_map(implemented) {
            places.entry((name, implemented)).or_default().insert(path);
        }
    }
    assert!(places.len() > 500, "{} types", places.len());
    let spread = places.iter().filter(|(_, files)| files.len() > MOST_FILES);
    let spread: Vec<_> = spread.map(|((_, name), files)| format!("{name}: {files:?}")).collect();
    assert!(spread.is_empty(), "{}", spread.join("\n"));
}

#[test]
fn inherent_blocks_are_found_and_traits_are_not() {
    assert_eq!(implemented("impl Held {"), Some("Held"));
    assert_eq!(implemented("impl<T: Fn() -> u8> Held<T>"), Some("Held"));
    assert_eq!(implemented("impl MediatedCall<'_, '_> {"), Some("MediatedCall"));
    assert_eq!(implemented("impl Display for Held {"), None);
    assert_eq!(implemented("impl<'a> From<&'a str> for Held<'a> {"), None);
    assert_eq!(implemented("    impl Held {"), None);
}

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::text::Ground;

fn rows(diff: &Diff, columns: usize, screen: usize) -> String {
    let lines = diff.lay(columns, screen);
    let mut rows = String::new();
    for row in &lines.rows {
        let mut text = if row.first { String::new() } else { "↪".to_owned() };
        for (range, tone) in lines.text.pieces(row.start..row.end) {
            let piece = lines.text.text().as_str().get(range).unwrap();
            match tone.ground {
                Ground::AddedWords | Ground::RemovedWords => text.push_str(&["⟦", piece, "⟧"].concat()),
                _ => text.push_str(piece),
            }
        }
        rows.push_str(text.trim_end());
        rows.push('\n');
    }
    rows
}

const UNIFIED: &str = "--- a/x\n+++ b/x\n@@ -8,4 +8,5 @@\n fn main() {\n-    let value = compute(first, 12);\n+    let value = compute(second, 12)?;\n+    println!(\"{value}\");\n \n }\n@@ -120,2 +121,1 @@\n-gone\n last\n\\ No newline at end of file\n";

#[test]
fn lines_have_their_numbers_and_words() {
    assert_snapshot!(rows(&read_unified(UNIFIED), 50, 80), @r#"
         --- a/x
         +++ b/x
      8  fn main() {
      9 -    let value = compute(⟦first⟧, 12);
      9 +    let value = compute(⟦second⟧, 12)⟦?⟧;
     10 +    println!("{value}");
     11
     12  }
         ⋮
    120 -gone
    121  last
         \ no line end at the end of the file
    "#);
    let (old, new) = ("a\nlet x = 1;\nb\n", "a\nlet x = 2;\nb");
    assert_snapshot!(rows(&between(old, new, Some(1)), 50, 80), @r"
    1  a
    2 -let x = ⟦1⟧;
    3 -b
    2 +let x = ⟦2⟧;
    3 +b
       \ no line end at the end of the file
    ");
    assert_snapshot!(rows(&between(old, new, None), 50, 80), @r"
     a
    -let x = ⟦1⟧;
    -b
    +let x = ⟦2⟧;
    +b
    ");
}

#[test]
fn before_and_after_stand_side_by_side_where_there_is_room() {
    let old: String = (1..30).map(|n| ["line ", &n.to_string(), "\n"].concat()).collect();
    let new = old
        .replace("line 12\n", "line twelve, which has become so long that it needs another row of its half\n")
        .replace("line 20\n", "");
    assert_snapshot!(rows(&between(&old, &new, Some(1)), 100, 140), @"
     9  line 9                                       │  9  line 9
    10  line 10                                      │ 10  line 10
    11  line 11                                      │ 11  line 11
    12 -line 12                                      │ 12 +line twelve, which has become so long that
    ↪                                                 │     it needs another row of its half
    13  line 13                                      │ 13  line 13
    14  line 14                                      │ 14  line 14
    15  line 15                                      │ 15  line 15
        ⋮
    17  line 17                                      │ 17  line 17
    18  line 18                                      │ 18  line 18
    19  line 19                                      │ 19  line 19
    20 -line 20                                      │
    21  line 21                                      │ 20  line 21
    22  line 22                                      │ 21  line 22
    23  line 23                                      │ 22  line 23
    ");
}

#[test]
fn each_file_that_is_new_or_gone_shows_all_of_it() {
    assert_snapshot!(rows(&Diff::added("one\n\ttwo"), 30, 200), @r"
    1 +one
    2 +    two
       \ no line end at the end
    ↪   of the file
    ");
    assert_snapshot!(rows(&Diff::removed(""), 30, 200), @r"
     (empty)
    ");
}

#[test]
fn what_is_no_hunk_shows_as_it_is() {
    let text = "@@ -1 +1 @@\n-a\n+b\n+c\n@@ -1 +1 @@ fn x\nBinary files differ\n";
    assert_snapshot!(rows(&read_unified(text), 40, 80), @r"
    1 -a
    1 +b
       +c
       @@ -1 +1 @@ fn x
       Binary files differ
    ");
}

#[test]
fn much_text_is_compared_in_bounded_time() {
    let old: String = (0..20_000).map(|n| [&(n * 7 % 9001).to_string(), "\n"].concat()).collect();
    let new: String = (0..20_000).map(|n| [&(n * 11 % 9001).to_string(), "\n"].concat()).collect();
    let diff = between(&old, &new, Some(1));
    assert_eq!(diff.counts(), Counts { added: 19_999, removed: 19_999 });
}

#[test]
fn the_words_of_many_lines_are_compared_in_bounded_time() {
    let line = |sign: char| [sign.to_string(), "a ".repeat(400), sign.to_string(), "\n".to_owned()].concat();
    let unified = ["@@ -1,2000 +1,2000 @@\n", &line('-').repeat(2000), &line('+').repeat(2000)].concat();
    let diff = read_unified(&unified);
    let compared = diff.lines.iter().filter(|line| !line.words.is_empty()).count();
    assert!((2..100).contains(&compared), "{compared}");
}

proptest! {
    #[test]
    fn every_character_of_a_change_shows(
        text in "([-+ @\\\\]|[a-z ]{1,4}|\n|\r|\t|\u{202e}|漢|\u{301}|@@ -1,2 [+]3,4 @@\n){0,40}", columns in 8_usize..60, wide in any::<bool>(),
    ) {
        let diff = read_unified(&text);
        let screen = if wide { 140 } else { 80 };
        let lines = diff.lay(columns, screen);
        let has_hunk = diff.lines.iter().any(|line| line.kind == Kind::Gap || line.numbers != [None; 2]);
        let shown: String = diff.lines.iter().map(|line| line.text.as_str()).collect();
        for row in &lines.rows {
            let text = &lines.text.text().as_str()[row.start..row.end];
            let used: usize = crate::text::Clusters::new(text, 0).map(|cluster| cluster.columns).sum();
            prop_assert!(used <= columns.max(8), "{text:?}");
        }
        if !has_hunk && !text.contains("@@ -") && !text.contains('\\') {
            let alone: String = text.split_inclusive('\n').map(|line| SafeText::exact(line.strip_suffix('\n').unwrap_or(line)).as_str().to_owned()).collect();
            prop_assert_eq!(shown, alone);
        }
    }
}

use insta::assert_snapshot;
use proptest::prelude::*;
use ratatui::style::Modifier;

use super::source::WINDOW;
use super::*;
use crate::model::{Block, Look};

fn blocks<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Vec<Block> {
    let mut source = Source::default();
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<Block> = None;
    for piece in pieces {
        source.push(piece);
        for finished in source.finished() {
            let mut block = open.take().unwrap_or_default();
            block.renew(render(&finished, Look::Assistant));
            blocks.push(block);
        }
        if let Some(piece) = source.open() {
            open.get_or_insert_default().renew(render(&piece, Look::Assistant));
        }
    }
    blocks.extend(open);
    blocks
}

fn rows(blocks: &[Block], width: u16) -> String {
    let mut rows = String::new();
    for block in blocks {
        if block.gap {
            rows.push('\n');
        }
        for part in &block.parts {
            for row in part.rows(width).iter() {
                let text = part.with_text(width, |text| text.text().as_str()[row.start..row.end].to_owned());
                rows.push_str(&[part.mark(*row, width).as_str(), &text].concat());
                rows.truncate(rows.trim_end_matches(' ').len());
                rows.push('\n');
            }
        }
    }
    rows
}

fn at_once(text: &str, width: u16) -> String {
    rows(&blocks([text]), width)
}

#[test]
fn headings_lists_and_quotes() {
    let text = "# The plan\nTwo steps, of which the first is **hard** and the `second()` is not so hard.\n\n\
        3. first: a line that is long enough to be wrapped\n   - nested\n     \n     and a paragraph\n4. second\n1. third\n\n\
        > a quote that is long enough to be wrapped\n> > inside\n\n- [x] done\n- [ ] open\n\n---\n<b>html</b>\n";
    assert_snapshot!(at_once(text, 36), @"

    The plan
    ━━━━━━━━
    Two steps, of which the first is
    hard and the second() is not so
    hard.

    3. first: a line that is long
       enough to be wrapped
       • nested

         and a paragraph
    4. second
    5. third

    ▏ a quote that is long enough to
    ▏ be wrapped
    ▏
    ▏ ▏ inside

    ☑ done
    ☐ open

    ────────────────────
    <b>html</b>
    ");
}

#[test]
fn numbers_of_notes_are_raised_and_nothing_else_in_brackets() {
    let text = "It holds[^1], as **told[^12]**. Not [^a-z], `[^1]` or [^1](https://a.example).\n\n\
        [^1]: A note of several words.\n\n[^12]: word\n\n[^x]: word\n";
    assert_snapshot!(at_once(text, 60), @"

    It holds¹, as told¹². Not [^a-z], [^1] or ^1
    (https://a.example).

    ¹: A note of several words.

    ¹²: word

    [^x]: word
    ");
}

#[test]
fn headings_have_three_weights_without_colour() {
    let text = "# One\n\n## Two\n\n### Three\n\n**bold**\n";
    let mut weights = Vec::new();
    for block in blocks([text]) {
        for part in &block.parts {
            part.with_text(60, |text| {
                let pieces = text.pieces(0..text.text().len());
                let words =
                    pieces.into_iter().map(|(range, tone)| (&text.text().as_str()[range], tone.emphasis));
                weights.extend(words.map(|(text, emphasis)| (text.to_owned(), emphasis)));
            });
        }
    }
    weights.retain(|(text, _)| !text.trim().is_empty());
    let expected = [
        ("One", Modifier::BOLD),
        ("━━━", Modifier::empty()),
        ("Two", Modifier::BOLD | Modifier::UNDERLINED),
        ("Three", Modifier::UNDERLINED),
        ("bold", Modifier::BOLD),
    ];
    assert_eq!(weights, expected.map(|(text, emphasis)| (text.to_owned(), emphasis)));
}

#[test]
fn links_show_their_addresses() {
    let text = "[the docs](https://evil.example/x \"a title\"), <https://b.example>, ![a cat](cat.png), [https://good.example](https://evil.example), <me@b.example>\n\n[later]\n\n[later]: https://c.example\n";
    assert_snapshot!(at_once(text, 60), @r#"

      the docs (https://evil.example/x "a title"),
      https://b.example, image: a cat (cat.png),
      https://good.example (https://evil.example), me@b.example

      [later]

      [later]: https://c.example
    "#);
}

#[test]
fn links_by_reference_have_the_addresses_that_were_defined_before_them() {
    let text = "[first], and [two words][A  Name].\n\n[a name]: https://a.example 'T'\n[A NAME]: https://other.example\nNow \
        [two words][A  Name], [a name], [a name][] and ![a cat][a name], **[in it][a name]**.\n\n[first]: <https://f.example>\n\n\
        | [first] |\n|--|\n| [none][of these] |\n\n- [f][first]\n";
    let shown = at_once(text, 60);
    assert_snapshot!(shown, @r#"
    [first], and [two words][A  Name].

    [a name]: https://a.example 'T'
    [A NAME]: https://other.example

    Now two words (https://a.example "T"), a name
    (https://a.example "T"), a name (https://a.example "T")
    and image: a cat (https://a.example "T"), in it
    (https://a.example "T").

    [first]: <https://f.example>

    first (https://f.example)
    ─────────────────────────
    [none][of these]

    • f (https://f.example)
    "#);
    // A finished block does not change when a link definition follows.
    let (before, _) = text.split_at(text.find("[first]: ").unwrap());
    let [whole, part] = [shown, at_once(before, 60)];
    assert!(whole.starts_with(part.trim_end()), "{part}");
}

#[test]
fn a_reply_is_laid_out_as_lines() {
    let text = "# Done\n\nIt is *fixed* in `a.rs`: \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} x\u{200d}y \x1b[2J\n\n- one\n- two\n\n```rust\nfn a() {}\n```\n";
    assert_eq!(laid_out(text, 60), rows(&blocks([text]), 60).trim_matches('\n'));
    assert_snapshot!(laid_out(text, 60), @r"
    Done
    ━━━━

    It is fixed in a.rs: 👨‍👩‍👧 x\u{200d}y \u{1b}[2J

    • one
    • two

    ╭ rust
    │ fn a() {}
    ");
    assert_eq!(laid_out("", 60), "");
}

#[test]
fn tables_share_the_width() {
    let text = "| name | what it does | n |\n|:--|:-:|--:|\n| `a` | one | 1 |\n| 漢字 | a longer text that needs its rows | 1000 |\n| x |\n";
    assert_snapshot!([at_once(text, 60), at_once(text, 36), at_once(text, 16)].join("=====\n"), @r#"

      name │           what it does            │    n
      ─────┼───────────────────────────────────┼─────
      a    │                one                │    1
      漢字 │ a longer text that needs its rows │ 1000
      x    │                                   │
    =====

      name │     what it does     │    n
      ─────┼──────────────────────┼─────
      a    │         one          │    1
      漢字 │  a longer text that  │ 1000
           │    needs its rows    │
      x    │                      │
    =====

      name: a
      what it does:
      one
      n: 1
      ─
      name: 漢字
      what it does:
      a longer text
      that needs its
      rows
      n: 1000
      ─
      name: x
    "#);
}

#[test]
fn code_keeps_its_lines() {
    let text = "Look:\n```rust {a}\nfn a() {\n    long_name(another_long_name, a_third_name);\n}\n```\n- item\n  ~~~\n  code\n  ~~~\n\n    indented\n";
    assert_snapshot!(at_once(text, 34), @r#"

      Look:
      ╭ rust {a}
      │ fn a() {
      │     long_name(another_long_nam
      ↪ e, a_third_name);
      │ }
      • item

        │ code

        indented
    "#);
}

#[test]
fn a_long_list_and_long_code_are_cut_where_nobody_sees_it() {
    let list: String = (0..2000).map(|n| ["1. item ", &n.to_string(), "\n"].concat()).collect();
    let shown = at_once(&list, 40);
    assert!(
        shown.starts_with("\n  1. item 0\n  2. item 1\n") && shown.ends_with("\n  2000. item 1999\n"),
        "{shown}"
    );
    let code: String = (0..2000).map(|n| ["line ", &n.to_string(), "\n"].concat()).collect();
    let shown = at_once(&format!("```\n{code}```\nafter\n"), 40);
    let lines = shown.lines().filter(|line| line.starts_with("  │ line ")).count();
    assert!(
        lines == 2000 && shown.ends_with("  │ line 1999\n  after\n"),
        "{lines} {}",
        &shown[shown.len() - 60..]
    );
    let table: String = (0..1000).map(|n| ["| ", &n.to_string(), " | x |\n"].concat()).collect();
    let shown = at_once(&format!("|a|b|\n|-|-|\n{table}"), 40);
    assert!(shown.lines().filter(|line| line.contains(" │ ")).count() == 1001, "{shown}");
}

#[test]
fn much_that_is_nested_stays_in_sight() {
    let text = [&"> 1000. ".repeat(9), "the words at its bottom\n"].concat();
    assert_snapshot!(at_once(&text, 24), @r"

    ▏ 1000.
    ▏       ▏
    ▏       ▏
    ▏       ▏
    ▏       ▏
    ▏       ▏ the words at
    ▏       ▏ its bottom
    ");
}

#[test]
fn what_is_hostile_is_bounded() {
    let most = 1 << 16;
    let wide = ["|a".repeat(10_000), "\n".into(), "|-".repeat(10_000), "\n|x\n".repeat(4000)].concat();
    let hostile = [
        ">".repeat(most),
        "- ".repeat(most / 2),
        "[".repeat(most),
        "*a ".repeat(most / 3),
        "`".repeat(most),
        "x".repeat(most),
        "~~~\n".repeat(most / 4),
        "<a ".repeat(most / 3),
        "\n".repeat(most),
        "  ".repeat(most / 2),
        "![](".repeat(most / 4),
        "1. ".repeat(most / 3),
        "&".repeat(most),
        "a\n\n".repeat(most / 3),
        "> - ".repeat(most / 4),
        ["|a".repeat(1000), "\n".into(), "|-".repeat(1000), "\n|x".repeat(2000)].concat(),
        wide,
        "```\n\u{202e}\x1b[2J\x07\0\u{200b}\n".to_owned(),
    ];
    for text in hostile {
        let shown = at_once(&text, 60);
        assert!(shown.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'));
    }
}

#[test]
fn a_delta_costs_no_more_after_much_text() {
    for line in ["word ", "- item\n", "> quote\n", "| a | b |\n", "paragraph\n\n", "x"] {
        for begin in ["", "```\n", "| a | b |\n|--|--|\n"] {
            let mut source = Source::default();
            source.push(begin);
            source.push(&line.repeat((1 << 16) / line.len()));
            source.push("\n| and");
            drop(source.finished());
            let open = source.open().unwrap();
            assert!(open.text.len() <= WINDOW + 64, "{begin:?} {line:?}: {}", open.text.len());
        }
    }
}

fn markdown() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "\n",
        "\n",
        "\n\n",
        "word",
        "another ",
        " ",
        "  ",
        "    ",
        "- ",
        "* ",
        "1. ",
        "2) ",
        "10. ",
        "# ",
        "## ",
        "> ",
        "```",
        "```rust\n",
        "~~~",
        "`",
        "**",
        "*",
        "_",
        "~~",
        "[a]",
        "[a][b]",
        "[b]: http://z 't'\n",
        "(http://x)",
        "[a]: http://y\n",
        "<b>",
        "<!-- ",
        "-->",
        "<div>\n",
        "---\n",
        "===\n",
        "| a | b |\n",
        "|--|--|\n",
        "|",
        "\\",
        "&amp;",
        "&am",
        "p;",
        "漢字",
        "\u{301}",
        "👨",
        "\u{200d}",
        "👩",
        "\x1b",
        "\u{202e}",
        "\t",
        "\r\n",
        "!",
        "x",
        "7",
    ]);
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn words_make_the_same_rows_as_the_whole(text in "([a-z0-9]{1,3} |[a-z]{1,3}|[0-9]|  |\n|\n\n|[-#>*|.`<]{1,3} ?|> |\n```\n|<b>\n|[|]-[|]\n){0,40}") {
        // The text is streamed by characters, and then by words.
        let characters: Vec<String> = text.chars().map(String::from).collect();
        prop_assert_eq!(rows(&blocks(characters.iter().map(String::as_str)), 30), at_once(&text, 30));
        prop_assert_eq!(rows(&blocks(text.split_inclusive(' ')), 30), at_once(&text, 30));
    }

    #[test]
    fn pieces_make_the_same_rows_as_the_whole(text in markdown(), times in 1_usize..4, cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        // Most of the texts are longer than the window.
        let text = if times == 1 { text } else { text.repeat(times * WINDOW / 3 / (text.len() + 1)) };
        let mut cuts: Vec<_> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces = blocks(cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]));
        prop_assert_eq!(rows(&pieces, 30), at_once(&text, 30));
    }
}

use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use super::emoji::is_sequence;
use super::hidden::{columns, is_hidden};
use super::*;

fn prose(text: &str) -> String {
    SafeText::prose(text).as_str().to_owned()
}

fn exact(text: &str) -> String {
    SafeText::exact(text).as_str().to_owned()
}

fn rows(text: &str, width: usize, how: Wrap) -> Vec<&str> {
    let mut rows = Vec::new();
    wrap(text, 0, Columns::all(width), how, &mut rows);
    rows.iter().map(|row| &text[row.start..row.end]).collect()
}

#[test]
fn what_does_not_show_becomes_an_escape() {
    assert_eq!(prose("a\x1b]0;t\x07b\nc\r\n"), "a\\u{1b}]0;t\\u{7}b\nc\\u{d}\n");
    assert_eq!(prose("x\u{202e}y\u{200b}\u{9b}"), "x\\u{202e}y\\u{200b}\\u{9b}");
    assert_eq!(prose("\u{301}a"), "\\u{301}a");
    assert_eq!(SafeText::bytes(b"a\xff\x1b\n").as_str(), "a\\xff\\u{1b}\\u{a}");
    assert_eq!(SafeText::line("a\nb\r\n").as_str(), "a\\u{a}b\\u{d}\\u{a}");
}

#[test]
fn what_shows_stays() {
    for text in ["e\u{301}tude", "漢字", "한국어", "🇩🇪", "हिन्दी", "ünï"] {
        assert_eq!((prose(text).as_str(), exact(text).as_str()), (text, text));
    }
}

#[test]
fn emoji_of_several_characters_show_in_prose() {
    let family = "👨\u{200d}👩\u{200d}👧\u{200d}👦";
    let wales = "\u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}";
    for emoji in
        [family, wales, "👍🏽", "👩🏽\u{200d}💻", "⚠\u{fe0f}", "1\u{fe0f}\u{20e3}", "🇩🇪", "❤\u{fe0f}\u{200d}🔥"]
    {
        assert_eq!((prose(emoji).as_str(), emoji.width()), (emoji, 2));
        assert!(is_disputed(emoji) && (exact(emoji) != emoji || emoji == "🇩🇪"), "{emoji}");
    }
    assert_eq!(exact("👍🏽"), "👍\\u{1f3fd}", "what runs shows each character");
}

#[test]
fn parts_of_emoji_alone_are_escapes() {
    assert_eq!(prose("👨\u{200d}"), "👨\\u{200d}");
    assert_eq!(prose("\u{1f3fd}"), "\\u{1f3fd}");
    assert_eq!(prose("a\u{200d}b"), "a\\u{200d}b");
    assert_eq!(prose("\u{1f3f4}\u{e0067}\u{e007f}"), "\u{1f3f4}\\u{e0067}\\u{e007f}");
    assert_eq!((prose("a\u{fe0f}!"), exact("a\u{fe0f}!")), ("a!".to_owned(), "a\\u{fe0f}!".to_owned()));
    let crowd = ["👨"; 9].join("\u{200d}");
    assert!(prose(&crowd).contains("\\u{200d}"));
    let heap: String = std::iter::once('a').chain(std::iter::repeat_n('\u{301}', 50)).collect();
    assert!(prose(&heap).starts_with("a\\u{301}\\u{301}"));
}

#[test]
fn spaces_that_are_not_the_space_show_in_what_runs() {
    assert_eq!((prose("a\u{a0}b"), exact("a\u{a0}b")), ("a\u{a0}b".to_owned(), "a\\u{a0}b".to_owned()));
}

#[test]
fn tabs_lead_to_the_next_stop() {
    assert_eq!(prose("\ta\tb\n漢\tx"), "    a   b\n漢  x");
}

#[test]
fn an_escape_is_known_from_a_text_that_spells_one() {
    let text = SafeText::exact("\\u{1b}\u{1b}z");
    let all = text.all();
    let escapes: Vec<_> = (0..text.len()).filter(|at| all.is_escape(*at)).collect();
    assert_eq!(escapes, (6..12).collect::<Vec<_>>());
    assert!(text.slice(8..13).is_escape(0) && !text.slice(8..13).is_escape(4));
}

#[test]
fn the_end_of_a_text_is_kept_by_whole_lines() {
    let mut text = SafeText::prose("first\nsec\x1bond\nthird\x07\n");
    text.keep_last(20);
    assert_eq!(text.as_str(), "third\\u{7}\n");
    assert!(text.all().is_escape(5));
    let mut line = SafeText::prose("abc\x1bdef\u{301}g");
    line.keep_last(9);
    assert_eq!(line.as_str(), "def\u{301}g");
    assert!(!line.all().is_escape(0));
}

#[test]
fn rows_break_after_spaces_or_anywhere() {
    assert_eq!(rows("one two  three", 7, Wrap::Words), ["one two  ", "three"]);
    assert_eq!(rows("one two three", 5, Wrap::Anywhere), ["one t", "wo th", "ree"]);
    assert_eq!(rows("one two   three", 5, Wrap::Code), ["one ", "two  ", " ", "three"]);
    assert_eq!(rows("    indented", 8, Wrap::Code), ["    inde", "nted"]);
    assert_eq!(rows("scale(unit=1,two=2) ok", 14, Wrap::Code), ["scale(unit=1,", "two=2) ok"]);
    assert_eq!(rows("a/long/path more", 9, Wrap::Code), ["a/long/", "path more"]);
    assert_eq!(rows("a\n\nb\n", 5, Wrap::Words), ["a", "", "b", ""]);
    assert_eq!(rows("漢字漢", 3, Wrap::Words), ["漢", "字", "漢"]);
    assert_eq!(rows("漢", 1, Wrap::Words), ["漢"]);
    assert_eq!(rows("abcdefgh ij", 4, Wrap::Words), ["abcd", "efgh ", "ij"]);
    assert_eq!(rows("done · 9.0k in · 0.1 s", 16, Wrap::Facts), ["done · 9.0k in · ", "0.1 s"]);
    assert_eq!(rows("done · 9.0k in · 0.1 s", 21, Wrap::Facts), ["done · 9.0k in · ", "0.1 s"]);
    assert_eq!(
        rows("done · 9.0k in, 40 out · 0.1 s", 20, Wrap::Facts),
        ["done · 9.0k in, 40 ", "out · 0.1 s"]
    );
    assert_eq!(rows("one two three · four", 9, Wrap::Facts), ["one two ", "three · ", "four"]);
    let mut hanging = Vec::new();
    wrap("abcdefgh\nij", 0, Columns { first: 4, rest: 2 }, Wrap::Words, &mut hanging);
    assert_eq!(hanging.iter().map(|row| row.start).collect::<Vec<_>>(), [0, 4, 6, 9]);
}

fn hard_text() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        4 => proptest::char::range(' ', '~'),
        2 => proptest::char::any(),
        2 => proptest::sample::select(vec![
            '\n', '\r', '\t', '\x1b', '\u{9b}', '\u{301}', '\u{200d}', '\u{fe0f}', '\u{202e}', '👍', '\u{1f3fd}', '漢', '🇩',
            '\u{e0041}', 'ᄀ', '\u{1161}', '\u{94d}', 'क', '\u{20e3}', '\u{3164}', '\u{ad}',
        ]),
    ];
    proptest::collection::vec(character, 0..60).prop_map(|characters| characters.into_iter().collect())
}

proptest! {
    #[test]
    fn clusters_are_those_of_unicode(text in hard_text()) {
        use unicode_segmentation::UnicodeSegmentation;
        let safe = prose(&text);
        let ours: Vec<_> = Clusters::new(&safe, 0).map(|cluster| (cluster.text, cluster.columns)).collect();
        let width = |text: &str| if text == "\n" { 0 } else { text.width() };
        let theirs: Vec<_> = safe.graphemes(true).map(|text| (text, width(text))).collect();
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn nothing_hidden_is_left(text in hard_text(), is_exact in any::<bool>()) {
        let safe = if is_exact { exact(&text) } else { prose(&text) };
        for cluster in Clusters::new(&safe, 0).filter(|cluster| cluster.text != "\n") {
            if !is_exact && is_sequence(cluster.text) {
                prop_assert_eq!(cluster.columns, 2, "{:?} in {:?}", cluster, &safe);
                continue;
            }
            prop_assert!(!cluster.text.chars().any(is_hidden), "{cluster:?} in {safe:?}");
            let sum: usize = cluster.text.chars().map(columns).sum();
            prop_assert!(cluster.columns > 0 && cluster.columns == sum, "{cluster:?} in {safe:?}");
        }
    }

    #[test]
    fn pieces_make_the_same_text_as_the_whole(text in hard_text(), cuts in proptest::collection::vec(0_usize..60, 0..4)) {
        let characters: Vec<char> = text.chars().collect();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(characters.len())).collect();
        cuts.extend([0, characters.len()]);
        cuts.sort_unstable();
        let mut pieces = SafeText::default();
        for pair in cuts.windows(2) {
            pieces.push(&characters[pair[0]..pair[1]].iter().collect::<String>());
        }
        prop_assert_eq!(pieces.as_str(), prose(&text));
    }

    #[test]
    fn rows_hold_all_of_the_text_and_fit(text in hard_text(), width in 2_usize..30, how in 0_usize..3) {
        let safe = prose(&text);
        let how = [Wrap::Words, Wrap::Facts, Wrap::Code, Wrap::Anywhere][how];
        let mut laid = Vec::new();
        wrap(&safe, 0, Columns::all(width), how, &mut laid);
        let mut joined = String::new();
        for row in &laid {
            let piece = &safe[row.start..row.end];
            let counted = if matches!(how, Wrap::Words | Wrap::Facts) { piece.trim_end_matches(' ') } else { piece };
            let fits = counted.width() <= width;
            prop_assert!(fits || Clusters::new(piece, 0).count() == 1, "{piece:?}");
            if row.first && row.start > 0 {
                joined.push('\n');
            }
            joined.push_str(piece);
        }
        prop_assert_eq!(joined, safe);
    }
}

#[test]
fn joiners_and_selectors_stay_where_they_make_an_emoji() {
    for whole in [
        "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}\u{1f466}",
        "\u{2764}\u{fe0f}",
        "1\u{fe0f}\u{20e3}",
        "\u{1f44d}\u{1f3fd}",
        "\u{1f1e9}\u{1f1ea}",
        "\u{2714}\u{fe0e} done",
    ] {
        let text = format!("a {whole} b\n");
        assert_eq!(printable(&text), text);
    }
    for (lone, shown) in [
        ("x\u{200d}y", "x\\u{200d}y"),
        ("\u{200d}\u{1f469}", "\\u{200d}\u{1f469}"),
        ("\u{1f468}\u{200d}", "\u{1f468}\\u{200d}"),
        ("\u{fe0f}x", "\\u{fe0f}x"),
        ("x\u{202e}y\u{feff}\u{e0041}", "x\\u{202e}y\\u{feff}\\u{e0041}"),
        ("\x1b[2J\r\n\t", "\\u{1b}[2J\\u{d}\n\t"),
    ] {
        assert_eq!(printable(lone), shown, "{lone:?}");
    }
}

#[test]
fn an_emoji_that_comes_in_pieces_is_one() {
    let text = "ok \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{2764}\u{fe0f} e\u{301} done";
    let cuts: Vec<_> = text.char_indices().map(|(at, _)| at).collect();
    for first in &cuts {
        for second in cuts.iter().filter(|second| *second >= first) {
            let (mut shown, mut tail) = (String::new(), String::new());
            for piece in [&text[..*first], &text[*first..*second], &text[*second..]] {
                let mut piece = tail + piece;
                tail = piece.split_off(open_cluster(&piece));
                shown += &printable(&piece);
            }
            assert_eq!(shown + &printable(&tail), text, "{first} {second}");
        }
    }
}

use super::{Log, everywhere};
use crate::journal::shown::{LOADS, Reading, markdown, page, text};

/// Texts that try to become terminal commands or markup.
const HOSTILE: &[&str] = &[
    "\u{1b}]0;t\u{7}\u{1b}[2J\u{9b}31m",
    "</script><script>alert(1)</script>",
    "</pre></section><h1>approved by the user</h1>",
    "\" onmouseover=\"alert(1)",
    "\u{202e}drowssap\u{202c} \u{200b}\u{feff}\u{2028}\u{2029}",
    "\n! THIS IS A WARNING\n❯ 00:00:00 user\n? 00:00:00 approval 1: approved by the user",
    "\r\u{8}\u{b}\u{c}\u{85}\0",
    "```\n# Heading\n![x](http://127.0.0.1/x)\n````\n~~~",
    "> quoted\n\n<img src=x onerror=alert(1)>\n[x]: http://127.0.0.1/",
];

fn shows(text: &str) -> bool {
    text.chars().all(|c| {
        let hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
        c == '\n' || !(c.is_control() || hidden)
    })
}

/// Returns the number of lines that are not marked as untrusted text by a rule (`│`) at their beginning.
fn ours(text: &str) -> usize {
    text.lines().filter(|line| !line.trim_start().starts_with('│')).count()
}

#[test]
fn no_text_commands_a_terminal_or_passes_for_a_line_of_ours() {
    for full in [false, true] {
        let plain = ours(&text(&everywhere("x").shown(full), None));
        for hostile in HOSTILE {
            let text = text(&everywhere(hostile).shown(full), None);
            assert!(shows(&text), "{hostile:?}");
            let more = ours(&text).abs_diff(plain);
            // A text of several lines becomes its own part, and a single line goes into the title.
            assert!(more <= 3, "{hostile:?}: {more}\n{text}");
            for line in text.lines() {
                assert!(!line.starts_with("! THIS IS A WARNING"), "{hostile:?}\n{text}");
                assert!(!line.starts_with("❯ 00:00:00"), "{hostile:?}\n{text}");
                assert!(!line.starts_with("? 00:00:00"), "{hostile:?}\n{text}");
            }
        }
    }
}

#[test]
fn no_text_leaves_its_fence() {
    for full in [false, true] {
        for hostile in HOSTILE {
            let document = markdown(&everywhere(hostile).shown(full));
            assert!(shows(&document), "{hostile:?}");
            let mut open: Option<String> = None;
            for line in document.lines() {
                let quoted = line.trim_start_matches("> ");
                match &open {
                    Some(fence) if quoted == fence => open = None,
                    Some(fence) => assert!(!quoted.starts_with(fence.as_str()), "{line:?} closes {fence}"),
                    None if quoted.starts_with("```") => {
                        open = Some(quoted.strip_suffix("text").unwrap().to_owned());
                    }
                    None => {
                        // Outside of fences every character of markup is escaped, except in our own lines.
                        let rest = quoted.trim_start_matches(['#', '*', '-', ' ']);
                        let is_marked = rest.match_indices(['<', '[', '!', '`']).any(|(at, _)| {
                            !rest[..at].ends_with('\\')
                                && !rest[at..].starts_with("`--full`")
                                && !rest[..at].ends_with("`--full")
                        });
                        assert!(!is_marked, "{hostile:?}: {line:?}");
                    }
                }
            }
            assert_eq!(open, None, "{hostile:?}");
        }
    }
}

#[test]
fn no_text_becomes_markup() {
    let tags = |page: &str| page.matches('<').count();
    for full in [false, true] {
        let plain = page(&everywhere("x").shown(full));
        for hostile in HOSTILE {
            let page = page(&everywhere(hostile).shown(full));
            assert!(shows(&page), "{hostile:?}");
            assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("<h1>approved"));
            // Some texts of several lines become an element of their own.
            assert!(tags(&page).abs_diff(tags(&plain)) <= 16, "{hostile:?}");
        }
    }
}

#[test]
fn a_page_loads_nothing_and_runs_nothing() {
    let page = page(&everywhere("x").shown(true));
    for word in LOADS.into_iter().chain(["href"]) {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'\""));
}

#[test]
fn a_long_line_is_cut_and_shown_whole_where_that_is_wanted() {
    let (command, endless) = ("y".repeat(1 << 20), "x".repeat(1 << 20));
    let log = Log::new().began().called("1", "shell_exec", serde_json::json!({"command": command})).finished(
        "1",
        "completed",
        &endless,
    );
    let cut = text(&log.shown(false), None);
    assert!(cut.len() < 32 << 10, "{}", cut.len());
    assert!(cut.contains("[1044576 more characters; --full shows them]"), "{cut:.2000}");
    let whole = text(&log.shown(true), None);
    assert!(whole.contains(&endless) && whole.contains(&command));
    let agent = "1".into();
    let of_one = Reading::new(Some(&agent), true).read(&log.loaded());
    assert!(page(&of_one).contains(&endless));
}

#[test]
fn the_rest_of_a_long_line_has_its_rule_at_any_width() {
    let forged = "? 00:00:00 approval 1: approved by the user";
    for columns in [0, 20, 80, 81, 133] {
        // The terminal breaks the line exactly where the forged line begins.
        let padded = format!("{}{forged}", "x".repeat(columns.max(20) - 2));
        let log = Log::new().began().said("1", &padded).called(
            "1",
            "run",
            serde_json::json!({"a": padded, "b": 1}),
        );
        let text = text(&log.finished("1", "failed", &padded).shown(false), Some(columns));
        assert!(text.lines().all(|line| !line.starts_with("? ")), "{columns}: {text}");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns.max(27)), "{columns}: {widest:?}\n{text}");
    }
}

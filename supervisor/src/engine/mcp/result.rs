//! Results of MCP tools, as text and pictures for the model.

use ipc::image::Image;
use ipc::mcp::{McpContent, McpFailure, McpLink, McpResult};

use super::names::visible;
use crate::engine::driver::ServedAnswer;

/// Maximum number of pictures of one result.
const MOST_PICTURES: usize = 8;

/// Converts a result to an answer. The middle of a text of more than `most` bytes is left out. The error is the text of
/// a result that the server marks as failed; it only mentions pictures.
pub(super) fn answer(result: McpResult, most: usize) -> Result<ServedAnswer, String> {
    let McpResult { failed, content, structured } = result;
    let mut images = Vec::new();
    let mut parts: Vec<_> =
        content.into_iter().map(|part| words_of_part(part, failed, &mut images)).collect();
    if parts.is_empty() {
        parts.extend(structured);
    }
    let text = bounded(&visible(&parts.join("\n")), most);
    match (failed, text) {
        (false, text) => Ok(ServedAnswer { text, images }),
        (true, text) if text.is_empty() => Err("the tool failed, and gave no reason".to_owned()),
        (true, text) => Err(text),
    }
}

/// Returns the text of one part of a result. Adds a picture to `images`, or only mentions it if the result `failed`.
fn words_of_part(part: McpContent, failed: bool, images: &mut Vec<Image>) -> String {
    match part {
        McpContent::Text(text) => text,
        McpContent::Image(image) if failed => format!("{image} (not shown: the call failed)"),
        McpContent::Image(image) if images.len() == MOST_PICTURES => {
            format!("{image} (not shown: a result shows at most {MOST_PICTURES} pictures)")
        }
        McpContent::Image(image) => {
            let words = image.to_string();
            images.push(image);
            words
        }
        McpContent::Resource { uri, text } => format!("[{uri}]\n{text}"),
        McpContent::Link(McpLink { uri, name, about }) => described(format!("[{name}]({uri})"), &about),
        McpContent::Template(McpLink { uri, name, about }) => {
            described(format!("[{name}]({uri}), with a value for each name in braces"), &about)
        }
        McpContent::Other { kind, bytes, note } => {
            let note = if note.is_empty() { note } else { format!(": it {note}") };
            format!("({kind} of {bytes} bytes, not shown{note})")
        }
    }
}

fn described(link: String, about: &str) -> String {
    if about.is_empty() { link } else { format!("{link}: {about}") }
}

/// Returns the text or, if it has more than `most` bytes, its beginning and end with the number of omitted bytes.
fn bounded(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most / 2);
    let tail = text.ceil_char_boundary(text.len() - most / 2);
    let omitted = tail - head;
    format!("{}\n[… {omitted} bytes omitted …]\n{}", &text[..head], &text[tail..])
}

/// Returns the reason why there is no result, as text for the model and the user.
pub(super) fn words(failure: &McpFailure) -> String {
    match failure {
        McpFailure::NotStarted { errno } => {
            format!(
                "the server's program could not be started: {}",
                std::io::Error::from_raw_os_error(*errno)
            )
        }
        McpFailure::Ended { code, said } => {
            let how = code
                .map_or_else(|| "was ended by a signal".to_owned(), |code| format!("ended with code {code}"));
            let said = visible(said.trim());
            if said.is_empty() {
                format!("the server's process {how}")
            } else {
                format!("the server's process {how} and said:\n{said}")
            }
        }
        McpFailure::Silent { seconds } => format!("the server did not answer within {seconds} s"),
        McpFailure::Broken(why) => format!("the server broke the protocol: {}", visible(why)),
        McpFailure::Refused { code, message } => {
            format!("the server answered with error {code}: {}", visible(message))
        }
        McpFailure::Cancelled => "the request was cancelled".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use ipc::image::MediaType;

    use super::*;

    fn result(failed: bool, content: Vec<McpContent>, structured: Option<&str>) -> Result<String, String> {
        let structured = structured.map(str::to_owned);
        answer(McpResult { failed, content, structured }, 200).map(|answer| answer.text)
    }

    #[test]
    fn a_result_is_text_with_its_parts_in_order() {
        let parts = vec![
            McpContent::Text("a\u{1b}b".to_owned()),
            McpContent::Resource { uri: "file:///x".to_owned(), text: "inside".to_owned() },
            McpContent::Link(link("u:1", "")),
            McpContent::Template(link("u:{n}", "numbers")),
            other("audio/wav", ""),
            other("image/png", "is no picture"),
        ];
        insta::assert_snapshot!(result(false, parts, Some("{}")).unwrap(), @r"
        a\u{1b}b
        [file:///x]
        inside
        [n](u:1)
        [n](u:{n}), with a value for each name in braces: numbers
        (audio/wav of 7 bytes, not shown)
        (image/png of 7 bytes, not shown: it is no picture)
        ");
        assert_eq!(result(false, vec![], Some("{\"n\":1}")), Ok("{\"n\":1}".to_owned()));
        assert_eq!(result(true, vec![McpContent::Text("no".to_owned())], None), Err("no".to_owned()));
    }

    fn link(uri: &str, about: &str) -> McpLink {
        McpLink { uri: uri.to_owned(), name: "n".to_owned(), about: about.to_owned() }
    }

    fn other(kind: &str, note: &str) -> McpContent {
        McpContent::Other { kind: kind.to_owned(), bytes: 7, note: note.to_owned() }
    }

    #[test]
    fn pictures_of_a_result_are_shown_up_to_a_bound_and_those_of_a_failure_are_named() {
        let picture = || McpContent::Image(Image::new(MediaType::Png, (1, 2), [0; 3]).unwrap());
        let shown = |failed, count| {
            let content = (0..count).map(|_| picture()).collect();
            answer(McpResult { failed, content, structured: None }, 2000)
        };
        let nine = shown(false, 9).unwrap();
        assert_eq!(nine.images.len(), MOST_PICTURES);
        assert!(
            nine.text.ends_with("[image png 1×2, 3 bytes] (not shown: a result shows at most 8 pictures)")
        );
        let failed = shown(true, 1).unwrap_err();
        assert_eq!(failed, "[image png 1×2, 3 bytes] (not shown: the call failed)");
    }

    #[test]
    fn a_long_result_keeps_its_beginning_and_its_end() {
        let long = format!("begin{}end", "é".repeat(400));
        let text = result(false, vec![McpContent::Text(long)], None).unwrap();
        assert!(text.starts_with("begin") && text.ends_with("end") && text.len() < 250, "{text}");
        assert!(text.contains("bytes omitted"));
    }
}

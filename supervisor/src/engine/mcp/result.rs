//! Results of a server's tools as text for the model.

use ipc::mcp::{McpContent, McpFailure, McpResult};

use super::names::visible;

/// Returns the text of a result, of at most `most` bytes: its beginning and its end. The error is a result that the server calls a
/// failure.
pub(super) fn text(result: McpResult, most: usize) -> Result<String, String> {
    let McpResult { failed, content, structured } = result;
    let mut parts: Vec<_> = content.into_iter().map(part).collect();
    if parts.is_empty() {
        parts.extend(structured);
    }
    let text = bounded(&visible(&parts.join("\n")), most);
    if failed {
        Err(if text.is_empty() { "the tool failed, and says nothing".to_owned() } else { text })
    } else {
        Ok(text)
    }
}

fn part(content: McpContent) -> String {
    match content {
        McpContent::Text(text) => text,
        McpContent::Image(image) => format!("({image}; pictures of servers are not shown)"),
        McpContent::Resource { uri, text } => format!("[{uri}]\n{text}"),
        McpContent::Link { uri, name } => format!("[{name}]({uri})"),
        McpContent::Other { kind, bytes } => format!("({kind} of {bytes} bytes; it is not shown)"),
    }
}

/// Keeps the beginning and the end of a text that is too long, and counts the rest.
fn bounded(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most / 2);
    let tail = text.ceil_char_boundary(text.len() - most / 2);
    let omitted = tail - head;
    format!("{}\n[… {omitted} bytes omitted …]\n{}", &text[..head], &text[tail..])
}

/// Returns the reason why a request has no result, for the model and for people.
pub(super) fn words(failure: &McpFailure) -> String {
    match failure {
        McpFailure::NotStarted { errno } => {
            format!("its program could not be started: {}", std::io::Error::from_raw_os_error(*errno))
        }
        McpFailure::Ended { code, said } => {
            let how = code
                .map_or_else(|| "was ended by a signal".to_owned(), |code| format!("ended with code {code}"));
            let said = visible(said.trim());
            if said.is_empty() { format!("it {how}") } else { format!("it {how} and said:\n{said}") }
        }
        McpFailure::Silent { seconds } => format!("it did not answer within {seconds} s"),
        McpFailure::Broken(why) => format!("it broke the protocol: {}", visible(why)),
        McpFailure::Refused { code, message } => {
            format!("it answered with error {code}: {}", visible(message))
        }
        McpFailure::Cancelled => "the request was taken back".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(failed: bool, content: Vec<McpContent>, structured: Option<&str>) -> Result<String, String> {
        text(McpResult { failed, content, structured: structured.map(str::to_owned) }, 100)
    }

    #[test]
    fn a_result_is_text_with_its_parts_in_order() {
        let parts = vec![
            McpContent::Text("a\u{1b}b".to_owned()),
            McpContent::Resource { uri: "file:///x".to_owned(), text: "inside".to_owned() },
            McpContent::Link { uri: "u:1".to_owned(), name: "n".to_owned() },
            McpContent::Other { kind: "audio".to_owned(), bytes: 7 },
        ];
        insta::assert_snapshot!(result(false, parts, Some("{}")).unwrap(), @r"
        a\u{1b}b
        [file:///x]
        inside
        [n](u:1)
        (audio of 7 bytes; it is not shown)
        ");
        assert_eq!(result(false, vec![], Some("{\"n\":1}")), Ok("{\"n\":1}".to_owned()));
        assert_eq!(result(true, vec![McpContent::Text("no".to_owned())], None), Err("no".to_owned()));
    }

    #[test]
    fn a_long_result_keeps_its_beginning_and_its_end() {
        let long = format!("begin{}end", "é".repeat(200));
        let text = result(false, vec![McpContent::Text(long)], None).unwrap();
        assert!(text.starts_with("begin") && text.ends_with("end") && text.len() < 150, "{text}");
        assert!(text.contains("bytes omitted"));
    }
}

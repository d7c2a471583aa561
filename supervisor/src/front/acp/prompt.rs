use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResourceResource};
use ipc::image::Image;
use protocol::rpc::{Attachment, ErrorObject, ErrorWord};
use serde_json::json;

use crate::journal::pictures;

#[derive(Debug, PartialEq)]
pub(super) struct Message {
    pub(super) text: String,
    pub(super) images: Vec<Image>,
}

/// Joins the blocks of a prompt into one message. Fails for a kind of block that cannot be sent.
pub(super) fn read(blocks: Vec<ContentBlock>) -> Result<Message, ErrorObject> {
    let (mut parts, mut images) = (Vec::new(), Vec::new());
    for (index, block) in blocks.into_iter().enumerate() {
        match block {
            ContentBlock::Text(text) => parts.push(text.text),
            ContentBlock::ResourceLink(link) => parts.push(format!("[{}]({})", link.name, place(&link.uri))),
            ContentBlock::Resource(resource) => match resource.resource {
                EmbeddedResourceResource::TextResourceContents(text) => {
                    parts.push(format!("\n<file path=\"{}\">\n{}\n</file>\n", place(&text.uri), text.text));
                }
                _ => return Err(refused(index, "only text can be embedded in a message")),
            },
            ContentBlock::Image(image) => {
                let attachment = json!({"media_type": image.mime_type, "data": image.data});
                let attachment: Attachment =
                    serde_json::from_value(attachment).map_err(|error| refused(index, &error.to_string()))?;
                let image = pictures::attached(attachment)
                    .map_err(|error| refused(index, &format!("the picture {error}")))?;
                images.push(image);
            }
            _ => return Err(refused(index, "only text, pictures and links to files are supported")),
        }
    }
    Ok(Message { text: parts.concat(), images })
}

fn place(uri: &str) -> &str {
    uri.strip_prefix("file://").unwrap_or(uri)
}

fn refused(index: usize, why: &str) -> ErrorObject {
    ErrorWord::InvalidParams.because(format!("prompt[{index}]: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(blocks: serde_json::Value) -> Result<Message, String> {
        read(serde_json::from_value(blocks).unwrap()).map_err(|error| error.message)
    }

    #[test]
    fn blocks_become_one_text() {
        let message = of(json!([
            {"type": "text", "text": "see "},
            {"type": "resource_link", "name": "a.rs", "uri": "file:///p/a.rs"},
            {"type": "resource", "resource": {"uri": "file:///p/b", "text": "b"}},
        ]));
        let text = "see [a.rs](/p/a.rs)\n<file path=\"/p/b\">\nb\n</file>\n".to_owned();
        assert_eq!(message, Ok(Message { text, images: vec![] }));
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for block in [
            json!({"type": "audio", "data": "", "mimeType": "audio/wav"}),
            json!({"type": "resource", "resource": {"uri": "x", "blob": ""}}),
            json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}),
            json!({"type": "image", "data": "AAAA", "mimeType": "image/bmp"}),
        ] {
            assert!(of(json!([block])).unwrap_err().starts_with("prompt[0]: "), "{block}");
        }
    }
}

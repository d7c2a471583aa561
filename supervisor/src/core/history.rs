//! The conversation as the model gets it: append-only, neighbours of one role joined.

use std::sync::Arc;

use ipc::image::Image;
use serde_json::value::RawValue;

use super::images::Images;
use crate::provider::{Message, UserBlock};

/// The conversation so far. Messages are shared with the requests that were made of it.
#[derive(Debug, Default)]
pub(super) struct History {
    messages: Vec<Arc<Message>>,
    /// The pictures in them, and those that have been promised to the next.
    images: Images,
}

impl History {
    /// Nothing yet, for a model that sees pictures or not.
    pub(super) fn new(sees_images: bool) -> Self {
        Self { messages: Vec::new(), images: Images::seen(sees_images) }
    }

    /// The conversation, cheap to clone.
    pub(super) fn messages(&self) -> Vec<Arc<Message>> {
        self.messages.clone()
    }

    /// The pictures that there is room for; of each other one, why there is none.
    pub(super) fn admit(&mut self, images: Vec<Image>) -> (Vec<Image>, Vec<String>) {
        let (mut admitted, mut left_out) = (Vec::new(), Vec::new());
        for image in images {
            match self.images.admit(&image) {
                Ok(()) => admitted.push(image),
                Err(full) => left_out.push(format!("{image} was left out: {full}")),
            }
        }
        (admitted, left_out)
    }

    /// Appends blocks of the user. The API joins neighbours of one role (WIRE R3); joining them here keeps the prefix
    /// what the model saw.
    pub(super) fn push_user(&mut self, blocks: Vec<UserBlock>) {
        match self.messages.last_mut().map(Arc::make_mut) {
            _ if blocks.is_empty() => {}
            Some(Message::User(last)) => last.extend(blocks),
            _ => self.messages.push(Arc::new(Message::User(blocks))),
        }
    }

    /// Appends blocks of the model.
    pub(super) fn push_assistant(&mut self, blocks: Vec<Box<RawValue>>) {
        match self.messages.last_mut().map(Arc::make_mut) {
            _ if blocks.is_empty() => {}
            Some(Message::Assistant(last)) => last.extend(blocks),
            _ => self.messages.push(Arc::new(Message::Assistant(blocks))),
        }
    }
}

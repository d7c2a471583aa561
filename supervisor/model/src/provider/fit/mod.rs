//! Converts a conversation into one that a provider accepts, whatever the log contains.
//!
//! Providers send data that they reject in requests: blank texts, ids in another form, thinking at the end of a
//! message. The log keeps such data unchanged. Each message is converted once, so that a request begins with the same
//! bytes as the previous request.

mod blocks;
mod ids;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::value::RawValue;

use blocks::Fit;
use ids::{CallIds, NamedCall};

pub(crate) use ids::IdForm;

use super::{Message, ProviderKind, UserBlock, calls_of};

/// Number of stored conversions at which those of deleted messages are removed for the first time.
const FIRST_SWEEP: usize = 256;

/// Text of a user's message that is added before a reply at the start of a conversation, or after a reply at its end.
/// The first and the last message must be the user's.
const GOES_ON: &str = "(the conversation goes on)";

#[derive(Clone, Copy, Debug)]
pub(crate) struct FitRules {
    pub kind: ProviderKind,
    pub ids: IdForm,
}

#[derive(Clone, Debug)]
pub(crate) struct FittedMessage {
    pub message: Arc<Message>,
    pub source: usize,
}

pub(crate) struct Fitting {
    rules: FitRules,
    kept: Mutex<KeptFits>,
}

#[derive(Default)]
struct KeptFits {
    /// Converted messages by the address of the original. While the weak reference exists, the address is not reused.
    by_address: HashMap<usize, KeptFit>,
    sweep_at: usize,
}

struct KeptFit {
    message: Weak<Message>,
    ids: IdForm,
    named: Vec<NamedCall>,
    /// The ids of the calls in the original message.
    calls: Vec<String>,
    fit: Fit,
}

impl Fitting {
    pub(crate) fn new(rules: FitRules) -> Self {
        Self { rules, kept: Mutex::default() }
    }

    pub(crate) fn fit(&self, messages: &[Arc<Message>], model: &str) -> Vec<FittedMessage> {
        let rules = FitRules { ids: self.rules.ids.of_model(model), ..self.rules };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut walk = FitWalk { rules, ids: CallIds::new(rules.ids), open: Vec::new(), fitted: Vec::new() };
        for (source, message) in messages.iter().enumerate() {
            walk.take(source, message, &mut kept);
        }
        if messages.last().is_some_and(|last| matches!(**last, Message::User(_))) {
            walk.end_with_user(messages.len() - 1);
        }
        // Calls at the end stay without results, because such a request is never sent.
        walk.fitted
    }
}

struct FitWalk {
    rules: FitRules,
    ids: CallIds,
    /// The tool calls that have no result yet.
    open: Vec<NamedCall>,
    fitted: Vec<FittedMessage>,
}

impl FitWalk {
    fn take(&mut self, source: usize, message: &Arc<Message>, kept: &mut KeptFits) {
        let named = match &**message {
            Message::User(_) => std::mem::take(&mut self.open),
            Message::Assistant(blocks) => {
                self.answer_open_calls(source);
                let calls = kept.calls(message, blocks);
                calls.into_iter().map(|id| self.ids.name(id)).collect()
            }
        };
        let fit = kept.fit(message, self.rules, &named);
        if matches!(**message, Message::Assistant(_)) {
            self.open = named;
        }
        match fit {
            Fit::AsItIs => self.push(source, Arc::clone(message)),
            Fit::Changed(changed) => self.push(source, changed),
            Fit::Nothing => {}
        }
    }

    /// Adds results for the calls that have no result.
    fn answer_open_calls(&mut self, source: usize) {
        let open = std::mem::take(&mut self.open);
        if !open.is_empty() {
            let results = open.iter().map(blocks::missing_result).collect();
            self.push(source, Arc::new(Message::User(results)));
        }
    }

    /// Adds a user's message if the last message is the model's.
    fn end_with_user(&mut self, source: usize) {
        if self.fitted.last().is_some_and(|last| matches!(*last.message, Message::Assistant(_))) {
            let going_on = Message::User(vec![UserBlock::Text(GOES_ON.to_owned())]);
            self.push(source, Arc::new(going_on));
        }
    }

    /// Adds a message, and before a reply at the start one of the user. Adjacent messages of one role are joined.
    fn push(&mut self, source: usize, message: Arc<Message>) {
        match (self.fitted.last_mut(), &*message) {
            (None, Message::Assistant(_)) => {
                let opening = Message::User(vec![UserBlock::Text(GOES_ON.to_owned())]);
                self.fitted.push(FittedMessage { message: Arc::new(opening), source });
                self.fitted.push(FittedMessage { message, source });
            }
            (Some(last), _) => match (&*last.message, &*message) {
                (Message::User(before), Message::User(blocks)) => {
                    let joined = [&before[..], &blocks[..]].concat();
                    *last = FittedMessage { message: Arc::new(Message::User(joined)), source };
                }
                (Message::Assistant(before), Message::Assistant(blocks)) => {
                    let joined = [&before[..], &blocks[..]].concat();
                    *last = FittedMessage { message: Arc::new(Message::Assistant(joined)), source };
                }
                _ => self.fitted.push(FittedMessage { message, source }),
            },
            (None, Message::User(_)) => self.fitted.push(FittedMessage { message, source }),
        }
    }
}

impl KeptFits {
    fn calls(&self, message: &Arc<Message>, blocks: &[Box<RawValue>]) -> Vec<String> {
        match self.by_address.get(&Arc::as_ptr(message).addr()) {
            Some(kept) => kept.calls.clone(),
            None => calls_of(blocks).into_iter().map(|call| call.0).collect(),
        }
    }

    fn fit(&mut self, message: &Arc<Message>, rules: FitRules, named: &[NamedCall]) -> Fit {
        let address = Arc::as_ptr(message).addr();
        if let Some(kept) = self.by_address.get(&address)
            && kept.named == named
            && kept.ids == rules.ids
        {
            return kept.fit.clone();
        }
        let (fit, calls) = match &**message {
            Message::User(user) => (blocks::of_user(user, named), Vec::new()),
            Message::Assistant(reply) => {
                let calls = named.iter().map(|call| call.id.clone()).collect();
                (blocks::of_assistant(reply, named, rules.kind), calls)
            }
        };
        self.sweep();
        let (message, named) = (Arc::downgrade(message), named.to_vec());
        let kept = KeptFit { message, ids: rules.ids, named, calls, fit: fit.clone() };
        self.by_address.insert(address, kept);
        fit
    }

    /// Removes conversions whose original message is gone, each time that the number of conversions has doubled.
    fn sweep(&mut self) {
        if self.by_address.len() >= self.sweep_at.max(FIRST_SWEEP) {
            self.by_address.retain(|_, kept| kept.message.strong_count() > 0);
            self.sweep_at = 2 * self.by_address.len();
        }
    }
}

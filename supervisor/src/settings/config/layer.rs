use std::collections::BTreeMap;
use std::ffi::OsString;

use gate::roles::Role;
use model::provider::catalogue::{Entry, Pattern};
use tui::keymap::Rebinding;

use super::keys::Key;
use super::mcp::McpServer;
use super::origin::ConfigOrigin;
use super::value::{Element, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub value: Value,
    pub origin: ConfigOrigin,
}

/// The settings of one source, such as a file or the flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    settings: BTreeMap<&'static str, Setting>,
    /// Keys of the terminal UI that are changed.
    pub bindings: Vec<Binding>,
    pub models: Vec<ModelEntry>,
    /// The roles of sub-agents that this source describes.
    pub roles: Vec<RoleEntry>,
    /// MCP servers. In a project's file, servers are only proposals.
    pub mcp: Vec<McpServer>,
    /// Lines of a project's file that are always ignored, because they could only add access.
    pub void: Vec<Void>,
}

/// A line of a project's file that is ignored even if the file is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Void {
    pub origin: ConfigOrigin,
    pub why: String,
}

impl std::fmt::Display for Void {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ignored: {}", self.origin, self.why)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub rebinding: Rebinding,
    pub(super) at: usize,
    pub origin: ConfigOrigin,
}

/// The settings for one model, or for all models with a common prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelEntry {
    pub pattern: Pattern,
    pub entry: Entry,
    pub origin: ConfigOrigin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleEntry {
    pub role: Role,
    pub origin: ConfigOrigin,
}

impl Layer {
    pub fn get(&self, key: &Key) -> Option<&Setting> {
        self.settings.get(key.name)
    }

    /// Returns the value of a key; `None` if the layer does not set it.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.settings.get(name).map(|setting| &setting.value)
    }

    /// Returns the elements that the layer lists under a key.
    pub(super) fn elements(&self, key: &Key) -> &[Element] {
        self.get(key).map(|setting| setting.value.elements()).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        let Self { settings, bindings, models, roles, mcp, void: _ } = self;
        settings.is_empty() && bindings.is_empty() && models.is_empty() && roles.is_empty() && mcp.is_empty()
    }

    pub fn set(&mut self, key: &Key, value: Value, origin: ConfigOrigin) {
        self.settings.insert(key.name, Setting { value, origin });
    }

    /// Adds the settings of `over`, which has precedence: its values replace those of this layer, and lists are joined.
    #[must_use]
    pub(super) fn under(mut self, over: Self) -> Self {
        for (name, mut setting) in over.settings {
            if let Value::List(above) = &mut setting.value
                && let Some(Value::List(ours)) = self.settings.remove(name).map(|ours| ours.value)
            {
                // If a variable is set twice, the last setting counts.
                *above = ours.into_iter().chain(std::mem::take(above)).collect();
            }
            self.settings.insert(name, setting);
        }
        self
    }

    /// Sets the key with this name. Without a value, changes nothing.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<Value>, origin: ConfigOrigin) -> Self {
        if let (Some(key), Some(value)) = (Key::named(name), value) {
            self.set(key, value, origin);
        }
        self
    }

    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut layer = self.clone();
        layer.settings.remove(name);
        layer
    }

    /// Sets a list in which each element is one word. An empty list changes nothing.
    #[must_use]
    pub fn with_list<T: Into<OsString>>(
        self,
        name: &str,
        words: impl IntoIterator<Item = T>,
        origin: &ConfigOrigin,
    ) -> Self {
        let list: Vec<_> = words.into_iter().map(|word| Element::word(word, origin.clone())).collect();
        let value = (!list.is_empty()).then_some(Value::List(list));
        self.with(name, value, origin.clone())
    }
}

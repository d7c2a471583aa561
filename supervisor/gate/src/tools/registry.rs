//! The tools of an agent.

use std::borrow::Cow;
use std::sync::Arc;

use super::builtin::{acting, reading};
use super::plan::{reporting, writing};
use super::spawn::{SPAWN, spawning};
use super::{Invocation, Tool, ToolDefinition, ToolUseError};
use crate::activity::Activity;
use crate::roles::Roles;

/// The most characters that every provider takes in the name of a tool.
const NAME: usize = 64;

/// The tools of an agent, fixed for its life.
pub struct Registry {
    tools: Vec<Arc<dyn Tool>>,
    definitions: Arc<[ToolDefinition]>,
}

/// The choice of an agent's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kit {
    /// True if it may come to write files.
    pub writes: bool,
    /// True if it may have sub-agents.
    pub delegates: bool,
    /// Its tool for a plan, if it has to do with one.
    pub plan: Option<PlanTool>,
}

/// The tool of an agent that has to do with a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanTool {
    /// It writes the plan.
    Write,
    /// It reports on the steps of one.
    Report,
}

/// Why a tool cannot be added to others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfitTool {
    /// Another one has its name.
    #[error("there is already a tool named `{0}`")]
    Duplicate(Cow<'static, str>),
    /// A model could not call it.
    #[error("a tool cannot be named {0:?}: a name has 1 to {NAME} letters, digits, `_` and `-`")]
    Name(Cow<'static, str>),
}

impl Registry {
    /// The tools that every agent has that is there for this, in the order in which the model sees them.
    pub fn for_activity(activity: Activity) -> Self {
        Self::for_kit(activity, Kit { writes: true, delegates: false, plan: None })
    }

    /// The tools of an agent that is there for this, without those that its rights deny it throughout.
    pub fn for_kit(activity: Activity, kit: Kit) -> Self {
        let mut tools = reading();
        tools.extend(acting(activity, kit.writes));
        tools.extend(kit.plan.map(|tool| match tool {
            PlanTool::Write => writing(),
            PlanTool::Report => reporting(),
        }));
        tools.extend(kit.delegates.then(|| spawning(&Roles::default())));
        let definitions = tools.iter().map(|tool| tool.definition().clone()).collect();
        Self { tools: tools.into_iter().map(Arc::from).collect(), definitions }
    }

    /// The same tools, of which a model reads about these roles in the one that starts sub-agents.
    #[must_use]
    pub fn with_roles(mut self, roles: &Roles) -> Self {
        if let Some(at) = self.tools.iter().position(|tool| tool.definition().name == SPAWN)
            && let Some(tool) = self.tools.get_mut(at)
        {
            *tool = spawning(roles).into();
        }
        self.defined()
    }

    /// Of the same tools only those of these names.
    #[must_use]
    pub fn only(mut self, names: &[String]) -> Self {
        self.tools.retain(|tool| names.iter().any(|name| *name == tool.definition().name));
        self.defined()
    }

    /// The first of these names that no tool has.
    pub fn lacks<'a>(&self, names: &'a [String]) -> Option<&'a str> {
        names.iter().map(String::as_str).find(|name| self.find(name).is_none())
    }

    /// Those of the same tools that a model was told of before, in the same words; or the name of one that is not among them.
    pub fn told_as(&self, definitions: Vec<ToolDefinition>) -> Result<Self, String> {
        let found = |definition: &ToolDefinition| {
            let tool = self.tools.iter().find(|tool| tool.definition().name == definition.name);
            tool.cloned().ok_or_else(|| definition.name.clone().into_owned())
        };
        let tools = definitions.iter().map(found).collect::<Result<_, _>>()?;
        Ok(Self { tools, definitions: definitions.into() })
    }

    fn defined(mut self) -> Self {
        self.definitions = self.tools.iter().map(|tool| tool.definition().clone()).collect();
        self
    }

    /// The same tools, and these behind them.
    pub fn with(mut self, more: Vec<Box<dyn Tool>>) -> Result<Self, UnfitTool> {
        for tool in more {
            let name = &tool.definition().name;
            if !is_name(name) {
                return Err(UnfitTool::Name(name.clone()));
            }
            if self.find(name).is_some() {
                return Err(UnfitTool::Duplicate(name.clone()));
            }
            self.tools.push(tool.into());
        }
        Ok(self.defined())
    }

    /// What the model is told: the same bytes at every call.
    pub fn definitions(&self) -> Arc<[ToolDefinition]> {
        Arc::clone(&self.definitions)
    }

    /// Finds the tool and reads the arguments.
    pub fn parse(&self, name: &str, input: &str) -> Result<Invocation, ToolUseError> {
        self.find(name).ok_or_else(|| self.unknown(name))?.parse(input)
    }

    fn find(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|tool| tool.definition().name == name).map(|tool| &**tool)
    }

    fn unknown(&self, name: &str) -> ToolUseError {
        let known: Vec<_> = self.definitions.iter().map(|definition| &*definition.name).collect();
        ToolUseError::Unknown { name: name.chars().take(NAME).collect(), known: known.join(", ") }
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=NAME).contains(&name.len()) && name.chars().all(is_plain)
}

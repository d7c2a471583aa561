use std::borrow::Cow;
use std::sync::Arc;

use super::builtin::{acting, reading};
use super::external::OfferedServer;
use super::fetch::{FETCH_URL, fetching};
use super::plan::{WRITE_PLAN, reporting, writing, writing_for};
use super::spawn::{SPAWN, spawning};
use super::{Invocation, Tool, ToolDefinition, ToolUseError};
use crate::activity::Activity;
use crate::roles::Roles;

/// Maximum length of a tool's name in characters. Every provider accepts such names.
const NAME: usize = 64;

pub struct Registry {
    tools: Vec<Arc<dyn Tool>>,
    definitions: Arc<[ToolDefinition]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kit {
    /// True if the agent may be able to write files at some time.
    pub writes: bool,
    pub fetches: bool,
    pub delegates: bool,
    pub plan: Option<PlanTool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanTool {
    Write,
    Report,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfitTool {
    #[error("there is already a tool named `{0}`")]
    Duplicate(Cow<'static, str>),
    /// The name is empty or too long, or has characters that providers do not accept.
    #[error("a tool cannot be named {0:?}: a name has 1 to {NAME} letters, digits, `_` and `-`")]
    Name(Cow<'static, str>),
}

impl Registry {
    pub fn for_activity(activity: Activity) -> Self {
        Self::for_kit(activity, Kit { writes: true, fetches: false, delegates: false, plan: None })
    }

    /// Returns the tools of an agent, without those that its access never allows.
    pub fn for_kit(activity: Activity, kit: Kit) -> Self {
        let mut tools = reading();
        tools.extend(acting(activity, kit.writes));
        tools.extend(kit.fetches.then(fetching));
        tools.extend(kit.plan.map(|tool| match tool {
            PlanTool::Write => writing(),
            PlanTool::Report => reporting(),
        }));
        tools.extend(kit.delegates.then(|| spawning(&Roles::default(), &[])));
        let definitions = tools.iter().map(|tool| tool.definition().clone()).collect();
        Self { tools: tools.into_iter().map(Arc::from).collect(), definitions }
    }

    #[must_use]
    pub fn with_roles(self, roles: &Roles) -> Self {
        self.replaced(SPAWN, || spawning(roles, &[]))
    }

    /// Adds servers and roles to the schemas of the tools that start sub-agents and write plans, if there are servers.
    #[must_use]
    pub fn passing_on(self, roles: &Roles, servers: &[OfferedServer]) -> Self {
        if servers.is_empty() {
            return self;
        }
        self.replaced(SPAWN, || spawning(roles, servers)).replaced(WRITE_PLAN, || writing_for(servers))
    }

    fn replaced(mut self, name: &str, other: impl FnOnce() -> Box<dyn Tool>) -> Self {
        if let Some(tool) = self.tools.iter_mut().find(|tool| tool.definition().name == name) {
            *tool = other().into();
        }
        self.defined()
    }

    #[must_use]
    pub fn only(mut self, names: &[String]) -> Self {
        self.tools.retain(|tool| names.iter().any(|name| *name == tool.definition().name));
        self.defined()
    }

    pub fn lacks<'a>(&self, names: &'a [String]) -> Option<&'a str> {
        names.iter().map(String::as_str).find(|name| self.find(name).is_none())
    }

    /// Returns the tools with the definitions that a model was given earlier. Fails with the name of a tool that is
    /// gone.
    pub fn told_as(&self, definitions: Vec<ToolDefinition>) -> Result<Self, String> {
        let found = |definition: &ToolDefinition| {
            let tool = self.tools.iter().find(|tool| tool.definition().name == definition.name);
            // The tool is left out where nothing can be fetched, and the model may know it from another front end. The
            // rights decide on each call.
            let withheld = || (definition.name == FETCH_URL).then(|| Arc::from(fetching()));
            tool.cloned().or_else(withheld).ok_or_else(|| definition.name.clone().into_owned())
        };
        let tools = definitions.iter().map(found).collect::<Result<_, _>>()?;
        Ok(Self { tools, definitions: definitions.into() })
    }

    fn defined(mut self) -> Self {
        self.definitions = self.tools.iter().map(|tool| tool.definition().clone()).collect();
        self
    }

    /// Adds tools. Fails if a name is invalid or exists already.
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

    /// Returns the tools together with `more`, of which those whose name is invalid or exists already are left out.
    #[must_use]
    pub fn extended(&self, more: Vec<Box<dyn Tool>>) -> Self {
        let mut extended = Self { tools: self.tools.clone(), definitions: self.definitions.clone() };
        for tool in more {
            let name = &tool.definition().name;
            if is_name(name) && extended.find(name).is_none() {
                extended.tools.push(tool.into());
            }
        }
        extended.defined()
    }

    pub fn definitions(&self) -> Arc<[ToolDefinition]> {
        Arc::clone(&self.definitions)
    }

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

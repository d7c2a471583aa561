//! Roles of sub-agents: instructions and limits for a kind of task, from the settings. A role never adds access.

mod markdown;

use std::sync::Arc;

use protocol::cost::Usd;

pub use markdown::parse_markdown;

/// Maximum number of roles. The model reads the description of each role with every request.
pub const MOST_ROLES: usize = 32;

/// Maximum size of a description in bytes. The parent's model reads it.
const LONGEST_DESCRIPTION: usize = 500;

/// Maximum size of a role's instructions in bytes. The sub-agent's model reads them.
const LONGEST_PROMPT: usize = 16 << 10;

const LONGEST_NAME: usize = 40;

pub const FIELDS: [&str; 7] = ["description", "prompt", "access", "model", "tools", "max_steps", "max_usd"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub name: String,
    /// Description of the tasks that the role is for. The parent's model reads it.
    pub description: String,
    pub prompt: String,
    /// True if the sub-agent may write by default. If false, it only reads, whatever its call says.
    pub writes: bool,
    pub model: Option<String>,
    /// Names of the only tools that the sub-agent may have; `None` for all tools that its access allows.
    pub tools: Option<Vec<String>>,
    pub max_steps: Option<u32>,
    pub max_usd: Option<Usd>,
}

#[derive(Clone, Debug, Default)]
pub struct Roles(Arc<[Role]>);

#[derive(Clone, Debug)]
pub enum RoleField {
    /// Value of a field as text. Numbers stay as they were written; names of tools are separated by commas.
    Text(String),
    List(Vec<String>),
}

#[derive(Debug, Default)]
pub struct RoleDraft {
    description: Option<String>,
    prompt: Option<String>,
    writes: bool,
    model: Option<String>,
    tools: Option<Vec<String>>,
    max_steps: Option<u32>,
    max_usd: Option<Usd>,
}

impl Roles {
    pub fn get(&self, name: &str) -> Option<&Role> {
        self.0.iter().find(|role| role.name == name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Role> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<T: IntoIterator<Item = Role>>(roles: T) -> Self {
        Self(roles.into_iter().collect())
    }
}

impl RoleDraft {
    /// Sets a field. The error says which value was expected.
    pub fn set(&mut self, field: &str, value: RoleField) -> Result<(), String> {
        match (field, value) {
            ("description", RoleField::Text(text)) => {
                self.description = Some(line(text, LONGEST_DESCRIPTION)?);
            }
            ("prompt", RoleField::Text(text)) => self.prompt = Some(bounded(text, LONGEST_PROMPT)?),
            ("access", RoleField::Text(text)) => self.writes = writes(text.trim())?,
            ("model", RoleField::Text(text)) => self.model = Some(line(text, LONGEST_DESCRIPTION)?),
            ("tools", RoleField::Text(text)) => self.tools = Some(tools(text.split(','))?),
            ("max_steps", RoleField::Text(text)) => self.max_steps = Some(steps(text.trim())?),
            ("max_usd", RoleField::Text(text)) => self.max_usd = Some(amount(text.trim())?),
            ("tools", RoleField::List(names)) => self.tools = Some(tools(names.iter().map(String::as_str))?),
            (known, RoleField::List(_)) if FIELDS.contains(&known) => {
                return Err("expected a text".to_owned());
            }
            _ => return Err(format!("not a field of a role: expected one of {}", FIELDS.join(", "))),
        }
        Ok(())
    }

    /// Returns the role. Fails if a field is missing or the name is invalid.
    pub fn finish(self, name: &str) -> Result<Role, String> {
        if !is_name(name) {
            return Err(format!(
                "{name:?} cannot be the name of a role: expected at most {LONGEST_NAME} letters, digits, `_` and `-`"
            ));
        }
        let Self { description, prompt, writes, model, tools, max_steps, max_usd } = self;
        let missing = |field: &str| format!("the role {name} has no {field}");
        Ok(Role {
            name: name.to_owned(),
            description: description.ok_or_else(|| missing("description"))?,
            prompt: prompt.ok_or_else(|| missing("prompt"))?,
            writes,
            model,
            tools,
            max_steps,
            max_usd,
        })
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(is_plain)
}

fn bounded(text: String, most: usize) -> Result<String, String> {
    let text = text.trim();
    let odd = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.is_empty() || text.len() > most || text.contains(odd) {
        return Err(format!("expected a text of at most {most} bytes without control characters"));
    }
    Ok(text.to_owned())
}

fn line(text: String, most: usize) -> Result<String, String> {
    let text = bounded(text, most)?;
    if text.contains(['\n', '\t']) { Err("expected one line".to_owned()) } else { Ok(text) }
}

fn writes(access: &str) -> Result<bool, String> {
    match access {
        "read" => Ok(false),
        "write" => Ok(true),
        _ => Err("expected \"read\" or \"write\"".to_owned()),
    }
}

fn steps(text: &str) -> Result<u32, String> {
    let steps = text.parse().ok().filter(|steps| *steps > 0);
    steps.ok_or_else(|| "expected a number of replies, at least 1".to_owned())
}

fn amount(text: &str) -> Result<Usd, String> {
    let amount = text.parse().ok().filter(|amount| *amount > Usd::ZERO);
    amount.ok_or_else(|| "expected an amount of US dollars above 0, as in 0.5".to_owned())
}

fn tools<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<String>, String> {
    let names: Vec<_> = names.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if names.is_empty() { Err("expected the names of tools".to_owned()) } else { Ok(names) }
}

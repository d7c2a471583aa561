//! Combines all layers. Precedence: flags, environment, the person's file, a trusted project's file. A stricter value
//! in a project's file always wins.

use super::effective::Effective;
use super::keys::{KEYS, Key, ProjectMay};
use super::layer::{Layer, Setting};
use super::origin::ConfigOrigin;
use super::settled::{Ignored, Resolution};
use super::value::{Element, Value};

#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    pub flags: &'a Layer,
    pub environment: &'a Layer,
    pub user: &'a Layer,
    pub project: &'a Layer,
    /// True if the person trusts the project's file.
    pub trusted: bool,
}

pub fn merge(layers: Layers<'_>) -> Effective {
    let mut ignored = Vec::new();
    let settled = KEYS.iter().map(|key| layers.settle(key, &mut ignored)).collect();
    let Layer { bindings, models, roles, mcp, .. } = layers.user.clone();
    let commands = Vec::new();
    let mut effective =
        Effective { settled, ignored, bindings, models, roles, commands, mcp, instructions: None };
    let granted: Vec<_> = effective.tools_always().collect();
    for server in &mut effective.mcp {
        server.always = granted.iter().filter(|grant| grant.server == server.name).cloned().collect();
    }
    effective
}

impl<'a> Layers<'a> {
    /// Returns the person's layers in descending precedence.
    fn of_user(&self) -> [&'a Layer; 3] {
        [self.flags, self.environment, self.user]
    }

    fn settle(&self, key: &'static Key, ignored: &mut Vec<Ignored>) -> Resolution {
        match key.preset.value() {
            Some(Value::List(_)) => self.list(key, ignored),
            preset => self.single(key, preset, ignored),
        }
    }

    /// Joins the elements of a list from all layers. Elements of an untrusted project are added to `ignored` instead.
    fn list(&self, key: &'static Key, ignored: &mut Vec<Ignored>) -> Resolution {
        let mut elements: Vec<Element> = Vec::new();
        let is_new =
            |elements: &[Element], one: &Element| !elements.iter().any(|other| other.is_like(one, key.kind));
        for layer in self.of_user() {
            let mut fresh: Vec<Element> = Vec::new();
            // If a variable is set twice in a layer, the later setting counts.
            for one in layer.elements(key).iter().rev() {
                if is_new(&elements, one) && is_new(&fresh, one) {
                    fresh.push(one.clone());
                }
            }
            elements.extend(fresh.into_iter().rev());
        }
        let of_project = self.project.elements(key).iter().filter(|one| is_new(&elements, one));
        let of_project: Vec<_> = of_project.cloned().collect();
        if self.trusted || key.project == ProjectMay::Narrow {
            elements.extend(of_project);
        } else {
            ignored.extend(of_project.into_iter().map(|one| {
                let origin = one.origin.clone();
                Ignored { key, value: Value::List(vec![one]), origin }
            }));
        }
        let origin = elements.first().map_or(ConfigOrigin::Default, |first| first.origin.clone());
        Resolution { key, value: Some(Value::List(elements)), origin }
    }

    /// Returns the value of a key that is no list: the one with precedence, unless the project's value is stricter.
    fn single(&self, key: &'static Key, preset: Option<Value>, ignored: &mut Vec<Ignored>) -> Resolution {
        let said = self.of_user().into_iter().find_map(|layer| layer.get(key));
        let settled = |Setting { value, origin }: &Setting| Resolution {
            key,
            value: Some(value.clone()),
            origin: origin.clone(),
        };
        let without =
            said.map_or_else(|| Resolution { key, value: preset, origin: ConfigOrigin::Default }, settled);
        let Some(project) = self.project.get(key) else { return without };
        if let (Some(Value::Network(own)), Value::Network(of_project)) = (&without.value, &project.value) {
            let net = own.meet(of_project);
            let narrowed =
                |net| Resolution { key, value: Some(Value::Network(net)), origin: project.origin.clone() };
            return if net == *own { without } else { narrowed(net) };
        }
        if key.project == ProjectMay::Lower && narrows(key, project, without.value.as_ref()) {
            return settled(project);
        }
        let says_the_same = without.value.as_ref() == Some(&project.value);
        if said.is_some() || says_the_same && key.project == ProjectMay::Lower {
            return without;
        }
        if self.trusted {
            return settled(project);
        }
        let Setting { value, origin } = project.clone();
        ignored.push(Ignored { key, value, origin });
        without
    }
}

/// True if the project's value is stricter than `without`, the value that is otherwise in force; `None` is no limit.
fn narrows(key: &Key, project: &Setting, without: Option<&Value>) -> bool {
    without.is_none_or(|value| project.value.width(key.kind) < value.width(key.kind))
}

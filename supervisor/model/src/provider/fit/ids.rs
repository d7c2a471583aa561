//! Converts ids of tool calls into the form that another server accepts. Different ids stay different.

use std::collections::{HashMap, HashSet};

/// Maximum length of an id in the form `Words`. This is a limit of gateways; the Messages API has none.
const LONGEST_WORD: usize = 64;

/// Length of an id for Mistral's models: "must be a-z, A-Z, 0-9, with a length of 9".
const NINE: usize = 9;

/// Parts of names of models that accept only ids of nine letters and digits.
const OF_NINE: [&str; 6] = ["mistral", "mixtral", "codestral", "devstral", "ministral", "magistral"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdForm {
    /// Ids of letters, digits, `_` and `-`.
    Words,
    /// Ids of at most this many visible ASCII characters.
    Visible(usize),
    Nine,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedCall {
    pub(super) id: String,
    pub(super) wire: String,
}

pub(super) struct CallIds {
    form: IdForm,
    taken: HashSet<String>,
    /// For each converted id, the number of calls with that id. Suffixes make their ids unique.
    wanted: HashMap<String, usize>,
}

impl IdForm {
    /// Returns the form of ids for a model. Mistral's chat template demands nine characters, whatever the server is.
    pub(super) fn of_model(self, model: &str) -> Self {
        let name = model.to_lowercase();
        match self {
            Self::Visible(_) if OF_NINE.iter().any(|part| name.contains(part)) => Self::Nine,
            Self::Words | Self::Visible(_) | Self::Nine => self,
        }
    }

    /// Returns an id in this form. An id that already has this form stays unchanged.
    fn shaped(self, id: &str) -> String {
        let shaped: String = match self {
            Self::Words => id.chars().take(LONGEST_WORD).map(word_character).collect(),
            Self::Visible(longest) => {
                id.chars().take(longest).map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect()
            }
            Self::Nine => {
                let fitting: Vec<_> = id.chars().filter(char::is_ascii_alphanumeric).collect();
                let from = fitting.len().saturating_sub(NINE);
                format!("{:0>NINE$}", fitting[from..].iter().collect::<String>())
            }
        };
        if shaped.is_empty() { "call".to_owned() } else { shaped }
    }

    /// Returns `shape` with a number that makes the id unique.
    fn numbered(self, shape: &str, number: usize) -> String {
        let suffix = format!("_{number}");
        let cut =
            |longest: usize| shape.chars().take(longest.saturating_sub(suffix.len())).collect::<String>();
        match self {
            Self::Words => cut(LONGEST_WORD) + &suffix,
            Self::Visible(longest) => cut(longest) + &suffix,
            Self::Nine => format!("{number:0>NINE$}"),
        }
    }
}

fn word_character(c: char) -> char {
    if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }
}

impl CallIds {
    pub(super) fn new(form: IdForm) -> Self {
        Self { form, taken: HashSet::new(), wanted: HashMap::new() }
    }

    /// Assigns an id to the next tool call of a conversation, whose id so far is `id`.
    pub(super) fn name(&mut self, id: String) -> NamedCall {
        let shape = self.form.shaped(&id);
        let mut wire = shape.clone();
        while self.taken.contains(&wire) {
            let wanted = self.wanted.entry(shape.clone()).or_insert(1);
            *wanted += 1;
            wire = self.form.numbered(&shape, *wanted);
        }
        self.taken.insert(wire.clone());
        NamedCall { id, wire }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wires(form: IdForm, ids: &[&str]) -> Vec<String> {
        let mut named = CallIds::new(form);
        ids.iter().map(|id| named.name((*id).to_owned()).wire).collect()
    }

    #[test]
    fn ids_that_fit_stay_and_others_are_mapped_one_to_one() {
        assert_eq!(
            wires(
                IdForm::Words,
                &["toolu_01", "functions.f:0", "functions.f.0", "functions_f_0", "é", "", "toolu_01"]
            ),
            ["toolu_01", "functions_f_0", "functions_f_0_2", "functions_f_0_3", "_", "call", "toolu_01_2"]
        );
        let any = IdForm::Visible(usize::MAX);
        assert_eq!(
            wires(any, &["functions.f:0", "call_0", "call_0", "a b"]),
            ["functions.f:0", "call_0", "call_0_2", "a_b"]
        );
        assert_eq!(
            wires(IdForm::Nine, &["AbCdEf123", "call_x", "x"]),
            ["AbCdEf123", "0000callx", "00000000x"]
        );
    }

    #[test]
    fn ids_that_are_the_same_in_another_form_stay_different() {
        let long = "x".repeat(200);
        for form in [IdForm::Words, IdForm::Visible(40), IdForm::Nine] {
            let ids: Vec<String> = (0..300).map(|n| format!("{long}{}", n % 7)).collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let wires = wires(form, &ids);
            let longest = wires.iter().map(String::len).max();
            assert_eq!(wires.iter().collect::<HashSet<_>>().len(), ids.len(), "{form:?}");
            assert!(longest <= Some(LONGEST_WORD), "{form:?}: {longest:?}");
        }
    }

    #[test]
    fn a_model_keeps_its_form_wherever_it_is_served() {
        let any = IdForm::Visible(usize::MAX);
        assert_eq!(any.of_model("mistralai/Devstral-Small"), IdForm::Nine);
        assert_eq!(any.of_model("qwen3"), any);
        assert_eq!(IdForm::Words.of_model("mistral-large"), IdForm::Words);
    }
}

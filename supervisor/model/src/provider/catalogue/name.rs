/// Pattern for names of models: one name, also with a date at its end, or `PREFIX*` for all names with that prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern(String);

impl Pattern {
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns how closely the pattern matches a model: the larger, the closer. `None` if the pattern does not match.
    fn closeness(&self, model: &str) -> Option<usize> {
        match self.0.strip_suffix('*') {
            Some(beginning) => model.starts_with(beginning).then_some(beginning.len()),
            None if model == self.0 => Some(usize::MAX),
            None => model.strip_prefix(&self.0).filter(|rest| is_date(rest)).map(|_| usize::MAX - 1),
        }
    }
}

/// Returns the entries whose pattern matches a model, the closest match first.
pub fn matching<'a, T>(said: impl IntoIterator<Item = &'a (Pattern, T)>, model: &str) -> Vec<&'a T> {
    let mut found: Vec<_> =
        said.into_iter().filter_map(|(pattern, said)| Some((pattern.closeness(model)?, said))).collect();
    found.sort_by_key(|(closeness, _)| std::cmp::Reverse(*closeness));
    found.into_iter().map(|(_, said)| said).collect()
}

fn is_date(text: &str) -> bool {
    let Some(date) = text.strip_prefix('-') else { return false };
    let shape: String = date.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    matches!(shape.as_str(), "00000000" | "0000-00-00")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_comes_first() {
        let said = ["a-*", "a-1", "*", "a-1-20250101", "a-10", "b"].map(|name| (Pattern::new(name), name));
        let of = |model| matching(&said, model).into_iter().copied().collect::<Vec<_>>();
        assert_eq!(of("a-1"), ["a-1", "a-*", "*"]);
        assert_eq!(of("a-1-20250101"), ["a-1-20250101", "a-1", "a-*", "*"]);
        assert_eq!(of("a-1-2025-01-01"), ["a-1", "a-*", "*"]);
        assert_eq!(of("a-1-mini"), ["a-*", "*"]);
        assert_eq!(of("A-1"), ["*"]);
    }
}

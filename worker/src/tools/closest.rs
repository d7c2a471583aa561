// Maximum number of compared lines, and of characters in each.
const COMPARED: usize = 50_000;
const LINE_CHARS: usize = 300;
/// Minimum similarity, from 0.0 to 1.0, of a line that is shown as similar to the wanted one.
const SIMILAR: f64 = 0.5;
/// Maximum number of lines that a hint shows.
const SHOWN: usize = 12;

/// Returns a hint on a missing text: the lines that differ only in white space, else similar ones, else a remedy.
pub fn hint(text: &str, wanted: &str) -> String {
    let lines: Vec<&str> = text.lines().take(COMPARED).collect();
    if let Some(first) = same_but_space(&lines, wanted) {
        let count = wanted.trim().lines().count().clamp(1, SHOWN);
        let shown = numbered(&lines, first, count);
        return format!(
            "Only white space differs (indentation, tabs, line ends) from these lines; copy them exactly:\n{shown}"
        );
    }
    match closest(&lines, wanted) {
        Some(best) => {
            let shown = numbered(&lines, best.saturating_sub(1), 3);
            format!("The closest lines are these; read the file again and copy the text exactly:\n{shown}")
        }
        None => "Nothing in the file is similar; read the file again, or check the path.".to_owned(),
    }
}

/// Returns the index at which the wanted lines begin if white space is ignored; `None` if they do not occur.
fn same_but_space(lines: &[&str], wanted: &str) -> Option<usize> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<_> = wanted.trim().lines().map(words).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let lines: Vec<_> = lines.iter().map(|line| words(line)).collect();
    let single = wanted.len() == 1;
    lines
        .windows(wanted.len())
        .position(|window| if single { window[0].contains(&wanted[0]) } else { window == wanted })
}

/// Returns the index of the line most similar to the longest wanted line; `None` if none is similar enough.
fn closest(lines: &[&str], wanted: &str) -> Option<usize> {
    let wanted = wanted.lines().map(str::trim).max_by_key(|line| line.len())?;
    let pairs = Pairs::of(wanted);
    let scored =
        lines.iter().enumerate().map(|(index, line)| (index, pairs.similarity(&Pairs::of(line.trim()))));
    let (best, score) = scored.fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best });
    (score >= SIMILAR).then_some(best)
}

fn numbered(lines: &[&str], first: usize, count: usize) -> String {
    let shown = lines.iter().enumerate().skip(first).take(count);
    let clipped = |line: &str| line.chars().take(LINE_CHARS).collect::<String>();
    shown.fold(String::new(), |text, (index, line)| text + &format!("{:>6}\t{}\n", index + 1, clipped(line)))
}

struct Pairs(Vec<(char, char)>);

impl Pairs {
    fn of(line: &str) -> Self {
        let chars = line.chars().take(LINE_CHARS);
        let mut pairs: Vec<_> = chars.clone().zip(chars.skip(1)).collect();
        pairs.sort_unstable();
        Self(pairs)
    }

    fn similarity(&self, other: &Self) -> f64 {
        let (mut left, mut right, mut common) = (self.0.iter().peekable(), other.0.iter().peekable(), 0_u32);
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let order = a.cmp(b);
            common += u32::from(order.is_eq());
            if order.is_le() {
                left.next();
            }
            if order.is_ge() {
                right.next();
            }
        }
        let total = u32::try_from(self.0.len() + other.0.len()).unwrap_or(u32::MAX);
        if total == 0 { 0.0 } else { f64::from(2 * common) / f64::from(total) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "fn main() {\n    let total = sum(&values);\n\tprintln!(\"{total}\");\n}\n";

    #[test]
    fn white_space_is_named_as_the_difference() {
        let hint = hint(FILE, "fn main() {\n  let total  = sum(&values);\n");
        assert!(hint.starts_with("Only white space differs"), "{hint}");
        assert!(hint.ends_with("\n     1\tfn main() {\n     2\t    let total = sum(&values);\n"), "{hint}");
    }

    #[test]
    fn the_closest_line_comes_with_its_neighbours() {
        let hint = hint(FILE, "let total = sum(values);");
        assert!(hint.starts_with("The closest lines"), "{hint}");
        assert!(hint.contains("     2\t    let total = sum(&values);\n"), "{hint}");
    }

    #[test]
    fn nothing_similar_is_said_plainly() {
        assert!(hint(FILE, "SELECT 1").starts_with("Nothing in the file is similar"));
        assert!(hint("", "x").starts_with("Nothing in the file is similar"));
        assert!(hint("\n\n", " \n ").starts_with("Nothing in the file is similar"));
    }
}

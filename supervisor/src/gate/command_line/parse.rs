//! From the text of a command to its simple commands, if it consists of nothing else.
//!
//! The grammar is that of tree-sitter, made for editors: it forgives. So each node is of a kind that is listed here, and
//! every byte of the text is accounted for: it belongs to a word, to a listed redirection, or to a gap that is listed.

use tree_sitter::{Node, Parser};

use super::lexical::{is_admissible, is_blank, is_inert, is_plain_word, on_one_line};

/// How many simple commands a covered command may have.
const MAX_COMMANDS: usize = 64;

/// How deep a tree of so many commands may be: each joins and redirects what stands left of it.
const MAX_DEPTH: usize = 4 * MAX_COMMANDS;

/// The operators that may join two commands; a line break that does is read as `;`.
const OPERATORS: [&str; 4] = [";", "&&", "||", "|"];

/// Redirections that touch no file, without blanks.
const REDIRECTIONS: [&str; 8] =
    [">/dev/null", "1>/dev/null", "2>/dev/null", "&>/dev/null", "</dev/null", "2>&1", "1>&2", ">&2"];

/// One program and its arguments, as the program gets them. There is always at least the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SimpleCommand {
    pub(super) words: Vec<String>,
}

impl SimpleCommand {
    pub(super) fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }
}

/// The simple commands of a text, or nothing if it is not certain that bash runs these and no others.
pub(super) fn simple_commands(text: &str) -> Option<Vec<SimpleCommand>> {
    if !is_admissible(text) {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let text = &on_one_line(text);
    let tree = parser.parse(text, None)?;
    let root = tree.root_node();
    if root.has_error() || root.kind() != "program" {
        return None;
    }
    let mut reader = Reader { text, end: 0, commands: Vec::new() };
    reader.statement(root, 0)?;
    let rest = text.get(reader.end..)?.trim_matches(is_blank);
    ["", ";"].contains(&rest).then_some(reader.commands)
}

/// What of the text was read.
struct Reader<'a> {
    text: &'a str,
    /// Where the last word or redirection ended.
    end: usize,
    commands: Vec<SimpleCommand>,
}

impl<'a> Reader<'a> {
    fn statement(&mut self, node: Node<'_>, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH || !is_sound(node) {
            return None;
        }
        match node.kind() {
            "program" | "list" | "pipeline" | "redirected_statement" => {
                let mut cursor = node.walk();
                node.children(&mut cursor).try_for_each(|child| self.statement(child, depth + 1))
            }
            "command" => self.command(node),
            "file_redirect" => self.redirection(node),
            // What joins commands is judged as text, when the next one begins.
            kind => OPERATORS.contains(&kind).then_some(()),
        }
    }

    fn command(&mut self, node: Node<'_>) -> Option<()> {
        if self.commands.len() == MAX_COMMANDS {
            return None;
        }
        let mut cursor = node.walk();
        let mut parts = node.children(&mut cursor);
        self.join(node)?;
        let mut words = vec![self.program(parts.next()?)?];
        for part in parts {
            self.blank(part)?;
            words.push(self.word(part)?);
        }
        self.commands.push(SimpleCommand { words });
        Some(())
    }

    /// Between two commands there is an operator, and nothing else; before the first there is nothing.
    fn join(&mut self, node: Node<'_>) -> Option<()> {
        let operator = self.gap(node)?.trim_matches(is_blank);
        let joined =
            if self.commands.is_empty() { operator.is_empty() } else { OPERATORS.contains(&operator) };
        joined.then_some(())
    }

    /// Words and redirections stand apart by blanks.
    fn blank(&mut self, node: Node<'_>) -> Option<()> {
        let gap = self.gap(node)?;
        (!gap.is_empty() && gap.chars().all(is_blank)).then_some(())
    }

    /// What lies between the last thing that was read and this one.
    fn gap(&self, node: Node<'_>) -> Option<&'a str> {
        self.text.get(self.end..node.start_byte())
    }

    /// The name of the program, which is written plainly.
    fn program(&mut self, node: Node<'_>) -> Option<String> {
        let (kind, child) = (node.kind(), node.child(0)?);
        let plain = kind == "command_name" && node.child_count() == 1 && child.kind() == "word";
        if plain { self.word(child) } else { None }
    }

    fn word(&mut self, node: Node<'_>) -> Option<String> {
        if node.kind() != "concatenation" {
            let word = self.piece(node)?;
            self.end = node.end_byte();
            return Some(word);
        }
        let mut word = String::new();
        let mut cursor = node.walk();
        self.end = node.start_byte();
        for piece in node.children(&mut cursor) {
            if !self.gap(piece)?.is_empty() {
                return None;
            }
            word.push_str(&self.piece(piece)?);
            self.end = piece.end_byte();
        }
        (self.end == node.end_byte()).then_some(word)
    }

    /// A part of a word, without its quotes.
    fn piece(&self, node: Node<'_>) -> Option<String> {
        if !is_sound(node) {
            return None;
        }
        let source = self.text.get(node.byte_range())?;
        let within = |quote: char| source.strip_prefix(quote)?.strip_suffix(quote);
        let text = match node.kind() {
            "word" | "number" => Some(source).filter(|word| is_plain_word(word)),
            "raw_string" => within('\'').filter(|text| !text.contains('\'')),
            "string" => within('"').filter(|text| text.chars().all(|c| c != '"' && is_inert(c))),
            _ => None,
        };
        text.map(str::to_owned)
    }

    fn redirection(&mut self, node: Node<'_>) -> Option<()> {
        if self.commands.is_empty() {
            return None;
        }
        self.blank(node)?;
        let source = self.text.get(node.byte_range())?;
        let listed = REDIRECTIONS.iter().any(|known| {
            let spaced = known.replace("/dev/null", " /dev/null");
            source == *known || source == spaced
        });
        self.end = node.end_byte();
        listed.then_some(())
    }
}

/// A node that stands for what is written, as it is written.
fn is_sound(node: Node<'_>) -> bool {
    !(node.is_error() || node.is_missing() || node.is_extra())
}

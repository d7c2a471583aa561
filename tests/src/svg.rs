//! Draws a terminal's screen as an SVG picture with selectable text.

use std::fmt::Write;

use vt100::{Cell, Color, Screen};

// Size of a character cell, in pixels.
const WIDTH: f32 = 8.4;
const HEIGHT: f32 = 18.0;
const MARGIN: f32 = 10.0;

const INK: &str = "#d8dee9";
const PAPER: &str = "#101418";

const PALETTE: [&str; 16] = [
    "#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9", "#5c6370",
    "#ff7a85", "#b5e890", "#ffd58a", "#82c4ff", "#e29bf0", "#7fdbe6", "#ffffff",
];

struct Run {
    column: u16,
    columns: u16,
    text: String,
    look: Look,
}

#[derive(Clone, PartialEq, Eq)]
struct Look {
    ink: String,
    paper: Option<String>,
    /// SVG attributes for bold, faint, slanted and underlined text.
    manner: Vec<&'static str>,
}

pub fn svg(screen: &Screen) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let [width, height] =
        [f32::from(columns) * WIDTH, f32::from(rows) * HEIGHT].map(|size| size + 2.0 * MARGIN);
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n"
    );
    for row in 0..rows {
        for run in runs(screen, row, columns) {
            run.draw(&mut picture, row);
        }
    }
    picture + "</svg>\n"
}

fn runs(screen: &Screen, row: u16, columns: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation()) else {
            continue;
        };
        let (look, text) = (Look::of(cell), if cell.has_contents() { cell.contents() } else { " " });
        // A wide cell, or one of several characters, may be drawn with another width than the terminal's.
        let is_plain = text.is_ascii();
        match runs.last_mut() {
            Some(run) if is_plain && run.look == look && run.text.is_ascii() => {
                run.columns += 1;
                run.text.push_str(text);
            }
            _ => {
                let columns = 1 + u16::from(cell.is_wide());
                runs.push(Run { column, columns, text: text.to_owned(), look });
            }
        }
    }
    runs
}

impl Look {
    fn of(cell: &Cell) -> Self {
        let (mut ink, mut paper) = (colour(cell.fgcolor()), colour(cell.bgcolor()));
        if cell.inverse() {
            (ink, paper) = (
                Some(paper.unwrap_or_else(|| PAPER.to_owned())),
                Some(ink.unwrap_or_else(|| INK.to_owned())),
            );
        }
        let ink = ink.unwrap_or_else(|| INK.to_owned());
        let manner = [
            (cell.bold(), "font-weight=\"bold\""),
            (cell.dim(), "opacity=\"0.6\""),
            (cell.italic(), "font-style=\"italic\""),
            (cell.underline(), "text-decoration=\"underline\""),
        ];
        Self {
            ink,
            paper,
            manner: manner.into_iter().filter(|(is_so, _)| *is_so).map(|(_, name)| name).collect(),
        }
    }
}

impl Run {
    fn draw(&self, picture: &mut String, row: u16) {
        let (x, y) = (f32::from(self.column).mul_add(WIDTH, MARGIN), f32::from(row).mul_add(HEIGHT, MARGIN));
        let width = f32::from(self.columns) * WIDTH;
        // A String takes every write.
        if let Some(paper) = &self.look.paper {
            let _ = writeln!(
                picture,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{paper}\"/>"
            );
        }
        if self.text.trim().is_empty() {
            return;
        }
        let style = [format!("fill=\"{}\"", self.look.ink), self.look.manner.join(" ")].join(" ");
        let (base, text) = (y + HEIGHT * 0.75, escaped(&self.text));
        let _ = writeln!(
            picture,
            "<text x=\"{x:.1}\" y=\"{base:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" {style}>{text}</text>"
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn colour(colour: Color) -> Option<String> {
    match colour {
        Color::Default => None,
        Color::Idx(index) => Some(indexed(index)),
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    }
}

/// Returns a colour of the 256-colour table: sixteen basic colours, a cube of 6 × 6 × 6, and greys.
fn indexed(index: u8) -> String {
    if let Some(colour) = PALETTE.get(usize::from(index)) {
        return (*colour).to_owned();
    }
    if index >= 232 {
        let grey = 8 + 10 * (index - 232);
        return format!("#{grey:02x}{grey:02x}{grey:02x}");
    }
    let level = |part: u8| if part == 0 { 0 } else { 55 + 40 * part };
    let [red, green, blue] = [(index - 16) / 36, (index - 16) / 6 % 6, (index - 16) % 6].map(level);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

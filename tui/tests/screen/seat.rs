//! Simulated terminal: a person's keys go in, and frames are drawn to a buffer.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ipc::confinement::Tier;
use ipc::rights::{NamedRoot, Network, RightsSummary};
use protocol::approval::ApprovalMode;
use protocol::event::Activity;
use protocol::frontend::{UiEvent, UiEventKind, UserActionKind};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Modifier;
use tui::keymap::Keymap;
use tui::{
    Action, Capabilities, Colour, KnownModel, KnownModels, Model, Msg, Origins, Previews, Shown, Start,
    StatusWords, ThemeName, UiTime, next_tick, update, view,
};

use crate::core::read_only;

/// A model, its screen, and a clock that only the test advances.
pub(crate) struct Seat {
    pub(crate) model: Model,
    pub(crate) terminal: Terminal<TestBackend>,
    pub(crate) now: Duration,
    buffer: Buffer,
    pub(crate) actions: Vec<Action>,
    /// True if the screen is drawn after every change, not only when a test asks for it.
    pub(crate) draws: bool,
}

fn known(name: &str, window: u64, price: Option<&str>) -> KnownModel {
    KnownModel { name: name.to_owned(), window, price: price.map(str::to_owned) }
}

pub(crate) fn start(size: (u16, u16)) -> Start {
    Start {
        project: "/home/me/project".into(),
        activity: Activity::Execute,
        mode: ApprovalMode::Ask,
        net: Network::Off,
        rights: RightsSummary { write: vec![NamedRoot::Temp, NamedRoot::Caches], ..read_only() },
        tier: Some(Tier::Full),
        model: "claude-opus-4-5".to_owned(),
        models: KnownModels {
            set: vec![known("other", 128_000, None), known("house-*", 32_768, None)],
            catalogue: vec![
                known("claude-opus-4-5", 200_000, Some("$5 in, $25 out")),
                known("claude-haiku-5-5", 1_000_000, Some("$1 in, $5 out")),
            ],
        },
        window: Some(200_000),
        keymap: Keymap::new(&[]).unwrap(),
        is_plain: false,
        status: StatusWords::Full,
        commands: Vec::new(),
        history: Vec::new(),
        capabilities: Capabilities { colour: Colour::Sixteen, theme: Some(ThemeName::default()), size },
        local_time: |time_ms| format!("11-29 17:{:02}", time_ms / 60_000),
        previews: Previews {
            prefix: |words| format!("any command that begins with {words:?}"),
            pattern: |pattern| format!("any file that matches {pattern}"),
        },
        unasked: Vec::new(),
        origins: Origins {
            mode: "default".to_owned(),
            net: "--net".to_owned(),
            write: "default".to_owned(),
            confirm_shell: "config.toml:3".to_owned(),
        },
    }
}

impl Seat {
    pub(crate) fn new(width: u16, height: u16) -> Self {
        Self::from(start((width, height)))
    }

    pub(crate) fn from(start: Start) -> Self {
        let (width, height) = start.capabilities.size;
        let terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let model = Model::new(start);
        let mut seat = Self {
            model,
            terminal,
            now: Duration::from_secs(1),
            buffer: Buffer::default(),
            actions: Vec::new(),
            draws: true,
        };
        seat.draw();
        seat
    }

    pub(crate) fn send(&mut self, message: Msg) {
        let actions = update(&mut self.model, UiTime::after(self.now), message);
        let redraw = actions.contains(&Action::Redraw);
        self.actions.extend(actions.into_iter().filter(|action| {
            !matches!(
                action,
                Action::Redraw | Action::Remember(_) | Action::User(_, UserActionKind::FindBranch)
            )
        }));
        if redraw && self.draws {
            self.draw();
        }
    }

    pub(crate) fn draw(&mut self) {
        let shown = self.frame();
        self.send(Msg::Drawn(shown));
    }

    pub(crate) fn frame(&mut self) -> Shown {
        // Enough time has passed since the last frame for streamed text to be parsed.
        update(&mut self.model, UiTime::after(self.now), Msg::Tick);
        let mut shown = Shown::default();
        self.buffer = self.terminal.draw(|frame| shown = view(&self.model, frame)).unwrap().buffer.clone();
        shown
    }

    pub(crate) fn core(&mut self, kind: UiEventKind) {
        self.send(Msg::Core(UiEvent { conversation_id: "c".into(), agent: "1".into(), kind }));
    }

    pub(crate) fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
        self.send(Msg::Tick);
    }

    pub(crate) fn press(&mut self, code: KeyCode) {
        self.send(Msg::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }

    pub(crate) fn ctrl(&mut self, c: char) {
        self.send(Msg::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)));
    }

    pub(crate) fn keys(&mut self, keys: &str) {
        for c in keys.chars() {
            self.press(if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) });
        }
    }

    /// Presses keys one by one, with pauses.
    pub(crate) fn slowly(&mut self, keys: &str) {
        for key in keys.chars() {
            self.wait(501);
            self.keys(key.encode_utf8(&mut [0; 4]));
            self.wait(501);
        }
    }

    pub(crate) fn resize(&mut self, width: u16, height: u16) {
        self.terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        self.send(Msg::Resize(width, height));
    }

    /// Returns the actions for the session's engine that were requested since the last call of this function.
    pub(crate) fn told(&mut self) -> Vec<UserActionKind> {
        let actions = std::mem::take(&mut self.actions);
        let told = actions.into_iter().filter_map(|action| match action {
            Action::User(_, kind) => Some(kind),
            _ => None,
        });
        told.collect()
    }

    pub(crate) fn tick(&self) -> Option<Duration> {
        next_tick(&self.model, UiTime::after(self.now))
    }

    pub(crate) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    pub(crate) fn screen(&self) -> String {
        let buffer = self.buffer();
        let width = usize::from(buffer.area.width);
        let rows = buffer.content.chunks(width).map(|row| {
            let mut text = String::new();
            let mut covered = 0;
            for cell in row {
                if covered == 0 {
                    text.push_str(cell.symbol());
                    covered = unicode_width::UnicodeWidthStr::width(cell.symbol()).max(1);
                }
                covered -= 1;
            }
            text.trim_end().to_owned()
        });
        rows.collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn row(&self, y: usize) -> String {
        self.screen().lines().nth(y).unwrap_or_default().to_owned()
    }

    /// Returns the reversed text of a row.
    pub(crate) fn reversed(&self, y: u16) -> String {
        let buffer = self.buffer();
        let cells = (0..buffer.area.width).filter_map(|x| buffer.cell((x, y)));
        cells.filter(|cell| cell.modifier.contains(Modifier::REVERSED)).map(Cell::symbol).collect()
    }
}

//! The loop between terminal, model and session: one message at a time, a frame when something changed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use agent::core::RunEnd;
use boundary::system::give_back_heap;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ipc::id::AgentId;
use protocol::event::EventKind;
use protocol::frontend::{AgentAction, UiEvent, UiEventKind, UserAction, UserActionKind};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};
use tui::{Action, CodeRead, Copied, Model, Msg, Shown, UiTime};

use super::background;
use super::calls;
use super::copy;
use super::frames::Frames;
use super::input::TerminalInput;
use super::keys::TypedKey;
use super::log_view;
use super::pick::is_any_other;
use super::remembered::UiMemory;
use super::tty::Tty;
use crate::engine::driver::SessionError;
use crate::engine::opening::{Handle, SessionEvents, find_log};
use crate::journal::pictures;
use crate::process::messages::notes;
use crate::process::signals::{Changes, Endings, SignalChange};
use crate::process::tty::stop_job;
use crate::settings::config::at_home;

/// How many events are taken together at most, so that keys and frames have their turn.
const TOGETHER: usize = 256;

/// How the session ended, if it did not panic.
pub(super) type UiEnded = Result<Result<RunEnd, SessionError>, JoinError>;

/// The places that the user's commands are about.
pub(super) struct UiPlaces {
    /// The directory in which relative paths begin that the user names.
    pub(super) project: PathBuf,
    /// The file of what was copied last.
    pub(super) copied: PathBuf,
    /// The session's log.
    pub(super) log: PathBuf,
}

/// The UI on a terminal that is engaged.
pub(super) struct Ui {
    pub(super) tty: Arc<Tty>,
    input: TerminalInput,
    frames: Frames,
    pub(super) endings: Endings,
    pub(super) changes: Changes,
    model: Model,
    handle: Handle,
    events: SessionEvents,
    places: UiPlaces,
    /// The history of the prompt, over sessions; absent once the file could not be written.
    remembered: Option<UiMemory>,
    clock: Instant,
    /// Whether what is on the screen is not what is.
    stale: bool,
    /// What the frame in flight shows.
    shown: Option<Shown>,
    /// Whether the user has seen anything.
    has_shown: bool,
    /// Whether a turn ended since the last frame.
    turn_ended: bool,
    /// Lines of code that are being read.
    reading: Option<oneshot::Receiver<CodeRead>>,
    /// The log, or an event of it, while it is read.
    reading_log: Option<oneshot::Receiver<Msg>>,
    /// The session that comes after this one, if one does.
    then: AfterUi,
}

/// The end of the program, or another session.
#[derive(Debug, Default)]
pub(super) enum AfterUi {
    #[default]
    Nothing,
    /// Another session: that of this name, or one that the person chooses.
    Session(Option<String>),
}

/// The next thing that happens.
enum UiInput {
    Signal(i32),
    Typed(TypedKey),
    Changed(SignalChange),
    Ended(Box<UiEnded>),
    Written,
    Due,
    Core(Option<UiEvent>),
    CodeRead(Option<CodeRead>),
    LogRead(Option<Msg>),
    Tick,
}

impl Ui {
    /// Must be called within the runtime. `clock` is the beginning of the model's time.
    pub(super) fn new(
        tty: Arc<Tty>,
        signals: (Endings, Changes),
        model: Model,
        (handle, events): (Handle, SessionEvents),
        (places, clock, remembered): (UiPlaces, Instant, UiMemory),
    ) -> io::Result<Self> {
        let input = TerminalInput::new(tty.descriptor())?;
        let frames = Frames::new(Arc::clone(&tty))?;
        let (endings, changes) = signals;
        let (stale, shown, has_shown, turn_ended) = (true, None, false, false);
        Ok(Self {
            tty,
            input,
            frames,
            endings,
            changes,
            model,
            handle,
            events,
            places,
            remembered: Some(remembered),
            clock,
            stale,
            shown,
            has_shown,
            turn_ended,
            reading: None,
            reading_log: None,
            then: AfterUi::default(),
        })
    }

    /// Asks the terminal for its background; the answer comes as a key would, and nobody waits for it.
    pub(super) fn ask_for_background(&mut self) -> io::Result<()> {
        self.input.expect_answer();
        self.tty.write_frame(background::QUESTION)
    }

    /// Sends the first message, if there is one, and draws the first frame; it is on its way when this returns.
    pub(super) async fn begin(&mut self, message: Option<String>) -> io::Result<()> {
        while let Ok(event) = self.events.try_recv() {
            self.tell(Msg::Core(event)).await?;
        }
        if let Some(text) = message {
            self.tell(Msg::Submit(text)).await?;
        }
        self.draw()
    }

    /// Serves the user until the session has ended; a terminal that is gone ends it.
    pub(super) async fn run(
        mut self,
        mut session: JoinHandle<Result<RunEnd, SessionError>>,
    ) -> (UiEnded, AfterUi, String) {
        match self.serve(&mut session).await {
            Ok(ended) => {
                self.input.take_last_answer().await;
                (ended, self.then, self.model.last_answer().to_owned())
            }
            Err(error) => {
                notes::hold(&format!("the terminal cannot be used any more: {error}"));
                self.act(UserActionKind::Agent(AgentAction::HangUp)).await;
                (session.await, AfterUi::Nothing, String::new())
            }
        }
    }

    async fn serve(&mut self, session: &mut JoinHandle<Result<RunEnd, SessionError>>) -> io::Result<UiEnded> {
        loop {
            match self.next(session).await? {
                UiInput::Ended(ended) => return Ok(*ended),
                UiInput::Signal(libc::SIGINT) => {
                    self.act(UserActionKind::Agent(AgentAction::Interrupt)).await;
                }
                UiInput::Signal(libc::SIGHUP) => self.act(UserActionKind::Agent(AgentAction::HangUp)).await,
                UiInput::Signal(_) => self.act(UserActionKind::Agent(AgentAction::Terminate)).await,
                UiInput::Typed(typed) => self.typed(typed).await?,
                UiInput::Changed(change) => self.changed(change)?,
                UiInput::Written => self.written().await?,
                UiInput::Due => {
                    self.read_what_waits().await?;
                    self.draw()?;
                    if std::mem::take(&mut self.turn_ended) {
                        give_back_heap();
                    }
                }
                UiInput::Core(Some(event)) => self.core(event).await?,
                UiInput::CodeRead(Some(read)) => self.tell(Msg::CodeRead(read)).await?,
                UiInput::LogRead(read) => match read {
                    Some(read) => self.tell(read).await?,
                    None => self.tell(Msg::LogRead(Err("the log could not be read".to_owned()))).await?,
                },
                // The session is about to end, and its result comes next; or code could not be read, and stays plain.
                UiInput::Core(None) | UiInput::CodeRead(None) => {}
                UiInput::Tick => self.tell(Msg::Tick).await?,
            }
            for note in notes::take() {
                self.tell(Msg::Note(note)).await?;
            }
        }
    }

    async fn next(&mut self, session: &mut JoinHandle<Result<RunEnd, SessionError>>) -> io::Result<UiInput> {
        let tick = tui::next_tick(&self.model, self.now()).map(|wait| Instant::now() + wait);
        let due = self.frames.due().filter(|_| self.stale && self.tty.is_engaged());
        tokio::select! {
            // Keys before the frame that they cannot have been meant for, and a frame before more to show: a flood of text
            // starves nobody.
            biased;
            signal = self.endings.next() => Ok(UiInput::Signal(signal)),
            typed = self.input.next() => typed.map(UiInput::Typed),
            change = self.changes.next() => Ok(UiInput::Changed(change)),
            ended = session => Ok(UiInput::Ended(Box::new(ended))),
            written = self.frames.written() => written.map(|()| UiInput::Written),
            () = until(due) => Ok(UiInput::Due),
            event = self.events.recv(), if !self.events.is_closed() || !self.events.is_empty() => Ok(UiInput::Core(event)),
            read = finished(&mut self.reading) => Ok(UiInput::CodeRead(read)),
            read = finished(&mut self.reading_log) => Ok(UiInput::LogRead(read)),
            () = until(tick) => Ok(UiInput::Tick),
        }
    }

    /// A key counts as typed when it is read: what waits is read before a frame is drawn, and again before one counts as seen.
    async fn read_what_waits(&mut self) -> io::Result<()> {
        for typed in self.input.waiting() {
            self.typed(typed).await?;
        }
        Ok(())
    }

    async fn typed(&mut self, typed: TypedKey) -> io::Result<()> {
        let message = match typed {
            TypedKey::Paste(text) => Msg::Paste(text),
            TypedKey::Focus(focused) => Msg::Focus(focused),
            TypedKey::Wheel(notches) => Msg::Wheel(notches),
            TypedKey::Theme(theme) => Msg::Theme(theme),
            // It says that nothing more is to come.
            TypedKey::Attributes => return Ok(()),
            TypedKey::Key(key) if !self.has_shown => Msg::Key(typed_ahead(key)),
            TypedKey::Key(key) if self.input.is_burst() => Msg::KeyOfMany(key),
            TypedKey::Key(key) => Msg::Key(key),
        };
        self.tell(message).await
    }

    async fn written(&mut self) -> io::Result<()> {
        self.read_what_waits().await?;
        self.has_shown = true;
        match self.shown.take() {
            Some(shown) => self.tell(Msg::Drawn(shown)).await,
            None => Ok(()),
        }
    }

    /// What has come by now is taken together: a reply streams faster than frames are drawn.
    async fn core(&mut self, first: UiEvent) -> io::Result<()> {
        self.take_in(first).await?;
        for _ in 0..TOGETHER {
            let Ok(event) = self.events.try_recv() else { break };
            self.take_in(event).await?;
        }
        Ok(())
    }

    async fn take_in(&mut self, event: UiEvent) -> io::Result<()> {
        self.turn_ended |= ends_a_turn(&event);
        self.tell(Msg::Core(event)).await
    }

    fn changed(&mut self, change: SignalChange) -> io::Result<()> {
        match change {
            SignalChange::Size => self.resize()?,
            SignalChange::Suspended => self.suspend()?,
            SignalChange::Continued => self.resume()?,
        }
        Ok(())
    }

    fn resize(&mut self) -> io::Result<()> {
        let size = self.tty.size();
        self.frames.resize(size)?;
        self.stale = true;
        self.update(Msg::Resize(size.width, size.height));
        Ok(())
    }

    /// Stops us as the shell expects it, with its own terminal back.
    fn suspend(&mut self) -> io::Result<()> {
        self.tty.release();
        // Where nobody could continue us we are not stopped, and go on at once.
        let _ = stop_job();
        self.resume()
    }

    pub(super) fn resume(&mut self) -> io::Result<()> {
        self.tty.engage()?;
        // What was in flight is not on the screen any more.
        self.shown = None;
        self.update(Msg::Resumed);
        self.resize()
    }

    pub(super) async fn act(&self, kind: UserActionKind) {
        self.handle.act(kind).await;
    }

    async fn act_on(&self, agent: AgentId, kind: UserActionKind) {
        let action = UserAction { agent: Some(agent), ..self.handle.action(kind) };
        self.handle.act_on(action).await;
    }

    /// Gives the model a message and carries out its answer.
    pub(super) async fn tell(&mut self, message: Msg) -> io::Result<()> {
        for action in self.update(message) {
            match action {
                Action::User(agent, kind) => self.act_on(agent, kind).await,
                Action::Quit => self.act(UserActionKind::Agent(AgentAction::Quit)).await,
                Action::Resume(name) => self.leave_for(name).await,
                Action::Redraw => self.stale = true,
                Action::Read(code) => self.reading = in_thread(move || code.read()),
                Action::ReadLog => {
                    let log = self.places.log.clone();
                    self.reading_log = in_thread(move || Msg::LogRead(log_view::rows(&log)));
                }
                Action::ReadEvent { at } => {
                    let log = self.places.log.clone();
                    self.reading_log = in_thread(move || Msg::EventRead(log_view::event(&log, at)));
                }
                Action::Call(reason) => self.frames.write_with_next(&calls::call(reason)),
                Action::EndCall => self.frames.write_with_next(calls::END_CALL),
                Action::Attach(path) => self.attach(&path),
                Action::EditPlan { agent, id, markdown } => {
                    Box::pin(self.edit_plan((agent, id), markdown)).await?;
                }
                Action::EditPrompt(text) => Box::pin(self.edit_prompt(text)).await?,
                Action::Copy { what, text } => self.copy(what, &text),
                Action::Remember(text) => self.remember(&text),
                Action::Repaint => self.resize()?,
                Action::Suspend => self.suspend()?,
            }
        }
        Ok(())
    }

    /// Says once that the history cannot be kept.
    fn remember(&mut self, text: &str) {
        if let Some(Err(error)) = self.remembered.as_ref().map(|remembered| remembered.add(text)) {
            self.remembered = None;
            self.update(Msg::Note(format!("the history of the prompt is not kept: {error}")));
            self.stale = true;
        }
    }

    /// Offers a text to the terminal's clipboard, and keeps it in a file.
    fn copy(&mut self, what: Copied, text: &str) {
        let sent = copy::to_clipboard(text);
        if let Some(bytes) = &sent {
            self.frames.write_with_next(bytes);
        }
        let written = copy::write(&self.places.copied, text);
        self.update(Msg::Answer(copy::told(what, sent.is_some(), &self.places.copied, &written)));
        self.stale = true;
    }

    /// Ends the session for another one; a name that leads to none ends nothing.
    async fn leave_for(&mut self, name: Option<String>) {
        let sessions = self.places.log.parent().unwrap_or(Path::new("."));
        let state = sessions.parent().unwrap_or(sessions);
        let is_alone = name.is_none() && matches!(is_any_other(state, &self.places.log), Ok(false));
        let found = name.as_deref().map(|name| find_log(sessions, Some(name), &self.places.project));
        let why = match found {
            Some(Err(why)) => why,
            Some(Ok(log)) if log == self.places.log => "that is this session".to_owned(),
            None if is_alone => "there is no other session to go on with".to_owned(),
            Some(Ok(_)) | None => {
                self.then = AfterUi::Session(name);
                return self.act(UserActionKind::Agent(AgentAction::Quit)).await;
            }
        };
        self.update(Msg::Answer(why));
        self.stale = true;
    }

    /// Reads a picture that the user named.
    fn attach(&mut self, path: &Path) {
        let path = at_home(path.as_os_str(), std::env::home_dir().as_deref());
        let read = pictures::read(&self.places.project.join(path)).map_err(|error| error.to_string());
        self.update(Msg::Attached(read));
        self.stale = true;
    }

    fn update(&mut self, message: Msg) -> Vec<Action> {
        let now = self.now();
        tui::update(&mut self.model, now, message)
    }

    fn draw(&mut self) -> io::Result<()> {
        let (model, mut shown) = (&self.model, None);
        self.frames.draw(|frame| shown = Some(tui::view(model, frame)))?;
        self.shown = shown;
        self.stale = false;
        Ok(())
    }

    fn now(&self) -> UiTime {
        UiTime::after(self.clock.elapsed())
    }
}

/// True for the session's first agent alone: sub-agents end their turns while it works.
fn ends_a_turn(event: &UiEvent) -> bool {
    event.agent == AgentId::root()
        && matches!(&event.kind, UiEventKind::Logged(event) if matches!(event.kind, EventKind::TurnFinished(_)))
}

/// Before the terminal was raw, it turned Enter into a line feed (ICRNL, termios(3)).
fn typed_ahead(key: KeyEvent) -> KeyEvent {
    match (key.code, key.modifiers) {
        (KeyCode::Char('j'), KeyModifiers::CONTROL) => KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE),
        _ => key,
    }
}

/// Reads something on a thread of its own, for which nobody waits, not even the end of the process.
fn in_thread<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Option<oneshot::Receiver<T>> {
    let (done, reading) = oneshot::channel();
    let run = move || {
        // Whoever has left does not need it.
        let _ = done.send(read());
    };
    thread::Builder::new().name("reader".to_owned()).spawn(run).ok().map(|_| reading)
}

async fn finished<T>(reading: &mut Option<oneshot::Receiver<T>>) -> Option<T> {
    let Some(receiver) = reading else { return std::future::pending().await };
    let read = receiver.await.ok();
    *reading = None;
    read
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

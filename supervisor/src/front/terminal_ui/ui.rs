//! The main loop of the terminal UI. It handles one message at a time, and draws what has changed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use agent::core::RunEnd;
use boundary::system::give_back_heap;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ipc::id::AgentId;
use ipc::image::Image;
use protocol::event::EventKind;
use protocol::frontend::{AgentAction, UiEvent, UiEventKind, UserAction, UserActionKind};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};
use tui::{Action, CodeRead, Copied, Model, Msg, Shown, UiTime};

use super::background;
use super::calls;
use super::copy;
use super::farewell::Farewell;
use super::frames::Frames;
use super::input::TerminalInput;
use super::keys::TypedKey;
use super::log_view;
use super::pick::is_any_other;
use super::remembered::UiMemory;
use super::tty::Tty;
use crate::engine::driver::SessionError;
use crate::engine::opening::{Handle, SessionEvents, find_log};
use crate::journal::pictures::{self, PictureError};
use crate::process::messages::notes;
use crate::process::signals::{Changes, Endings, SignalChange};
use crate::process::tty::stop_job;
use crate::settings::config::at_home;

/// Maximum number of events that are handled before keys are read and a frame is drawn.
const TOGETHER: usize = 256;

/// Result of the session; the outer error means that the session's task panicked.
pub(super) type UiEnded = Result<Result<RunEnd, SessionError>, JoinError>;

/// Files of the person that the UI uses.
pub(super) struct UiPlaces {
    pub(super) project: PathBuf,
    /// File with the last copied text.
    pub(super) copied: PathBuf,
    pub(super) log: PathBuf,
}

/// The terminal, and handlers of the signals that end this process or concern the terminal.
pub(super) struct ControllingTerminal {
    pub(super) tty: Arc<Tty>,
    pub(super) endings: Endings,
    pub(super) changes: Changes,
}

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
    /// History of the prompt; `None` after the history could not be written.
    remembered: Option<UiMemory>,
    clock: Instant,
    stale: bool,
    /// Content of the frame that is being written; `None` if no frame is.
    shown: Option<Shown>,
    has_shown: bool,
    turn_ended: bool,
    /// Receives source code that a thread reads.
    reading: Option<oneshot::Receiver<CodeRead>>,
    /// Receives the log or the event that a thread reads.
    reading_log: Option<oneshot::Receiver<Msg>>,
    /// Receives the picture that a thread reads from the clipboard.
    reading_picture: Option<oneshot::Receiver<Msg>>,
    then: AfterUi,
}

/// The action that follows the end of the UI.
#[derive(Debug, Default)]
pub(super) enum AfterUi {
    #[default]
    Nothing,
    Session(Option<String>),
}

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
    PictureRead(Option<Msg>),
    Tick,
}

impl Ui {
    /// Creates the UI. Must be called within the runtime. `clock` is the instant that is time zero of the UI.
    pub(super) fn new(
        terminal: ControllingTerminal,
        model: Model,
        handle: Handle,
        events: SessionEvents,
        places: UiPlaces,
        clock: Instant,
        remembered: UiMemory,
    ) -> io::Result<Self> {
        let ControllingTerminal { tty, endings, changes } = terminal;
        let input = TerminalInput::new(tty.descriptor())?;
        let frames = Frames::new(Arc::clone(&tty))?;
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
            reading_picture: None,
            then: AfterUi::default(),
        })
    }

    /// Asks the terminal for its background. The answer arrives as input.
    pub(super) fn ask_for_background(&mut self) -> io::Result<()> {
        self.input.expect_answer();
        self.tty.write_frame(background::QUESTION)
    }

    /// Sends the first message, if there is one, and starts to write the first frame.
    pub(super) async fn begin(&mut self, message: Option<String>) -> io::Result<()> {
        while let Ok(event) = self.events.try_recv() {
            self.tell(Msg::Core(event)).await?;
        }
        if let Some(text) = message {
            self.tell(Msg::Submit(text)).await?;
        }
        self.draw()
    }

    /// Runs the main loop until the session has ended. A closed terminal ends the session.
    pub(super) async fn run(
        mut self,
        mut session: JoinHandle<Result<RunEnd, SessionError>>,
    ) -> (UiEnded, AfterUi, Farewell) {
        match self.serve(&mut session).await {
            Ok(ended) => {
                self.input.take_last_answer().await;
                (ended, self.then, Farewell::of(&self.model))
            }
            Err(error) => {
                notes::hold(&format!("the terminal cannot be used any more: {error}"));
                self.act(UserActionKind::Agent(AgentAction::HangUp)).await;
                (session.await, AfterUi::Nothing, Farewell::default())
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
                UiInput::PictureRead(Some(read)) => self.tell(read).await?,
                // The session is about to end, or the source code could not be read and is shown without colours.
                UiInput::Core(None) | UiInput::CodeRead(None) | UiInput::PictureRead(None) => {}
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
            // Keys come before the frame, because they cannot refer to it. A frame comes before new events, so that a
            // flood of text cannot delay it.
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
            read = finished(&mut self.reading_picture) => Ok(UiInput::PictureRead(read)),
            () = until(tick) => Ok(UiInput::Tick),
        }
    }

    /// Handles all keys typed before the next frame is shown, so that none of them answers a question in that frame.
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
            // The answer only shows that no earlier answer is missing.
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

    /// Handles all events that have arrived, because a reply streams faster than frames are drawn.
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

    /// Restores the terminal and stops the process, as ^Z does (job control).
    fn suspend(&mut self) -> io::Result<()> {
        self.tty.release();
        // Without a parent shell we are not stopped and continue at once.
        let _ = stop_job();
        self.resume()
    }

    pub(super) fn resume(&mut self) -> io::Result<()> {
        self.tty.engage()?;
        // A frame that was being written is no longer on the screen.
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

    /// Passes a message to the state of the UI, and carries out the resulting actions.
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
                Action::AttachClipboard => self.attach_clipboard(),
                Action::FindPicture { text, path } => {
                    if let Ok(image) = self.picture(&path) {
                        self.update(Msg::PictureFound { text, image });
                        self.stale = true;
                    }
                }
                Action::EditPlan { agent, id, markdown } => {
                    Box::pin(self.edit_plan(agent, id, markdown)).await?;
                }
                Action::EditText { agent, id, path, text } => {
                    Box::pin(self.edit_text(agent, id, path, text)).await?;
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

    fn remember(&mut self, text: &str) {
        if let Some(Err(error)) = self.remembered.as_ref().map(|remembered| remembered.add(text)) {
            self.remembered = None;
            self.update(Msg::Note(format!("the history of the prompt is not saved: {error}")));
            self.stale = true;
        }
    }

    /// Sends a text to the terminal's clipboard and writes it to a file.
    fn copy(&mut self, what: Copied, text: &str) {
        let sent = copy::to_clipboard(text);
        if let Some(bytes) = &sent {
            self.frames.write_with_next(bytes);
        }
        let written = copy::write(&self.places.copied, text);
        self.update(Msg::Answer(copy::told(what, sent.is_some(), &self.places.copied, &written)));
        self.stale = true;
    }

    /// Ends the session, so that the named session can be opened. If no session has this name, only reports that.
    async fn leave_for(&mut self, name: Option<String>) {
        let sessions = self.places.log.parent().unwrap_or(Path::new("."));
        let state = sessions.parent().unwrap_or(sessions);
        let is_alone = name.is_none() && matches!(is_any_other(state, &self.places.log), Ok(false));
        let found = name.as_deref().map(|name| find_log(sessions, Some(name), &self.places.project));
        let why = match found {
            Some(Err(why)) => why,
            Some(Ok(log)) if log == self.places.log => "this session is open already".to_owned(),
            None if is_alone => "there is no other session".to_owned(),
            Some(Ok(_)) | None => {
                self.then = AfterUi::Session(name);
                return self.act(UserActionKind::Agent(AgentAction::Quit)).await;
            }
        };
        self.update(Msg::Answer(why));
        self.stale = true;
    }

    fn attach(&mut self, path: &Path) {
        let read = self.picture(path).map_err(|error| error.to_string());
        self.update(Msg::Attached(read));
        self.stale = true;
    }

    fn picture(&self, path: &Path) -> Result<Image, PictureError> {
        let path = at_home(path.as_os_str(), std::env::home_dir().as_deref());
        pictures::read(&self.places.project.join(path))
    }

    /// Reads the clipboard in a thread, because a program of the desktop may be slow. Does nothing while a read runs.
    fn attach_clipboard(&mut self) {
        if self.reading_picture.is_none() {
            let project = self.places.project.clone();
            self.reading_picture = in_thread(move || Msg::Attached(pictures::in_clipboard(&project)));
        }
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

fn ends_a_turn(event: &UiEvent) -> bool {
    event.agent == AgentId::root()
        && matches!(&event.kind, UiEventKind::Logged(event) if matches!(event.kind, EventKind::TurnFinished(_)))
}

/// Corrects a key that was typed before the terminal was raw: then the terminal has turned Enter into a line feed
/// (ICRNL, termios(3)).
fn typed_ahead(key: KeyEvent) -> KeyEvent {
    match (key.code, key.modifiers) {
        (KeyCode::Char('j'), KeyModifiers::CONTROL) => KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE),
        _ => key,
    }
}

/// Runs a read on a thread. The process can end without waiting for the thread. `None` if no thread could be started.
fn in_thread<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Option<oneshot::Receiver<T>> {
    let (done, reading) = oneshot::channel();
    let run = move || {
        // The receiver may have been dropped.
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

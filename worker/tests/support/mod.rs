//! Harness for a real worker over real pipes, without a sandbox.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]

use std::collections::HashMap;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use ipc::effect::{Assembler, Effect};
use ipc::id::{AgentId, CallId, Generation};
use ipc::message::{CallOutcome, Chunk, Hello, SnapshotEntry, ToSupervisor, ToWorker, Work};
use ipc::pipe::{FrameReader, Outgoing};
use ipc::rights::Rights;
use ipc::tool::{Edit, EditFile, Ignored, ReadFile, ToolCall, ToolError, ToolOutput, WriteFile};
use tempfile::TempDir;

/// Time limit of a step, longer than any step takes; a worker that hangs fails its test.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Worker {
    pub child: Child,
    pub project: PathBuf,
    outgoing: Option<Outgoing<ChildStdin, ToWorker>>,
    incoming: Receiver<ToSupervisor>,
    early: HashMap<CallId, Vec<ToSupervisor>>,
    last: u64,
    directory: Option<TempDir>,
}

pub fn rights(project: &Path) -> Rights {
    Rights { read: vec!["/".into()], write: vec![project.into()], ..Rights::default() }
}

pub fn hello(project: &Path) -> Hello {
    Hello {
        agent: AgentId::root(),
        project: project.into(),
        temp: None,
        rights: rights(project),
        tier: ipc::confinement::Tier::Floor,
        shell_init: None,
        leftovers: None,
    }
}

pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bailiwick-worker"));
    command.args(["--generation", "1"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Worker {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path().canonicalize().unwrap();
        let mut worker = Self::start(command(), hello(&project));
        worker.directory = Some(directory);
        worker
    }

    pub fn start(mut command: Command, hello: Hello) -> Self {
        let project = hello.project.as_path().to_owned();
        let mut child = command.spawn().unwrap();
        let mut outgoing = Outgoing::new(child.stdin.take().unwrap(), Generation(1));
        let mut reader = FrameReader::new(child.stdout.take().unwrap(), Generation(1));
        let (sender, incoming) = channel();
        thread::spawn(move || {
            while let Ok(Some(message)) = reader.receive() {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        outgoing.send(&ToWorker::Hello(hello)).unwrap();
        let early = HashMap::new();
        let mut worker =
            Self { child, project, outgoing: Some(outgoing), incoming, early, last: 0, directory: None };
        assert!(matches!(worker.receive(), ToSupervisor::Ready(_)));
        worker
    }

    pub fn send(&mut self, message: &ToWorker) {
        self.outgoing.as_mut().unwrap().send(message).unwrap();
    }

    pub fn receive(&mut self) -> ToSupervisor {
        self.incoming.recv_timeout(PATIENCE).expect("a message from the worker")
    }

    /// Sends a call without waiting for anything.
    pub fn call(&mut self, work: Work) -> CallId {
        self.last += 1;
        let call = CallId(self.last);
        self.send(&ToWorker::Call { call, work });
        call
    }

    pub fn fresh_call(&mut self) -> CallId {
        self.last += 1;
        CallId(self.last)
    }

    pub fn cancel(&mut self, call: CallId) {
        self.send(&ToWorker::Cancel { call });
    }

    pub fn next_of(&mut self, call: CallId) -> ToSupervisor {
        if let Some(early) = self.early.get_mut(&call).filter(|early| !early.is_empty()) {
            return early.remove(0);
        }
        loop {
            let message = self.receive();
            let of = match &message {
                ToSupervisor::Output { call, .. }
                | ToSupervisor::Prepared { call, .. }
                | ToSupervisor::Outcome { call, .. } => *call,
                other => panic!("{other:?}"),
            };
            if of == call {
                return message;
            }
            self.early.entry(of).or_default().push(message);
        }
    }

    pub fn all_of(&mut self, call: CallId) -> (Vec<Chunk>, Option<Effect>, CallOutcome) {
        let (mut chunks, mut assembler, mut effect) = (Vec::new(), Assembler::default(), None);
        loop {
            match self.next_of(call) {
                ToSupervisor::Output { chunk, .. } => chunks.push(chunk),
                ToSupervisor::Prepared { part, .. } => effect = assembler.push(part).unwrap(),
                ToSupervisor::Outcome { outcome, .. } => return (chunks, effect, outcome),
                other => panic!("{other:?}"),
            }
        }
    }

    pub fn outcome(&mut self, work: Work) -> CallOutcome {
        let call = self.call(work);
        self.all_of(call).2
    }

    pub fn run(&mut self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        done(self.outcome(Work::Run(call)))
    }

    pub fn read(&mut self, path: impl AsRef<Path>) -> Result<ipc::tool::FileText, ToolError> {
        match self.run(read_file(path))? {
            ToolOutput::File(text) => Ok(text),
            other => panic!("{other:?}"),
        }
    }

    pub fn prepare(&mut self, call: ToolCall) -> Result<Effect, ToolError> {
        let call = self.call(Work::Prepare(call));
        match self.all_of(call) {
            (_, Some(effect), CallOutcome::Prepared) => Ok(effect),
            (_, None, CallOutcome::Failed(error)) => Err(error),
            other => panic!("{other:?}"),
        }
    }

    /// Makes an approved change by a new worker, since a worker makes only one change.
    pub fn one_shot(&self, effect: &Effect) -> Result<ToolOutput, ToolError> {
        Self::start(command(), hello(&self.project)).commit(effect)
    }

    pub fn commit(&mut self, effect: &Effect) -> Result<ToolOutput, ToolError> {
        let call = self.fresh_call();
        for part in effect.to_parts().unwrap() {
            self.send(&ToWorker::Commit { call, part });
        }
        done(self.all_of(call).2)
    }

    pub fn ignored(&mut self) -> Ignored {
        let call = self.call(Work::Snapshot { contents: false });
        match done(self.all_of(call).2).unwrap() {
            ToolOutput::Snapshot(summary) => summary.ignored,
            other => panic!("{other:?}"),
        }
    }

    pub fn entries(&mut self, work: Work) -> (Vec<(SnapshotEntry, Vec<u8>)>, Vec<String>) {
        let call = self.call(work);
        let (chunks, _, outcome) = self.all_of(call);
        let mut entries = Vec::new();
        for chunk in chunks {
            match chunk {
                Chunk::Entries(more) => entries.extend(more.into_iter().map(|entry| (entry, Vec::new()))),
                Chunk::Content(bytes) => entries.last_mut().unwrap().1.extend(bytes),
                Chunk::Text(_) => panic!("text in a snapshot"),
            }
        }
        match done(outcome).unwrap() {
            ToolOutput::Snapshot(summary) => {
                assert_eq!(summary.entries, entries.len() as u64);
                (entries, summary.notes)
            }
            other => panic!("{other:?}"),
        }
    }

    /// Closes the pipe. Returns the worker's exit code and standard error.
    pub fn end(mut self) -> (Option<i32>, String) {
        self.outgoing = None;
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }

    pub fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.project.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub fn bytes(&self, path: impl AsRef<Path>) -> Vec<u8> {
        std::fs::read(self.project.join(path)).unwrap()
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(&self.project)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// Sets an extended attribute; false if the file system supports none.
pub fn set_attribute(path: &Path, name: &str, value: &[u8]) -> bool {
    let [path, name] = [path.to_str().unwrap(), name].map(|text| std::ffi::CString::new(text).unwrap());
    // SAFETY: C strings, and a value of its length.
    let answer =
        unsafe { nix::libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) };
    answer == 0
}

pub fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let (file, name) = (std::fs::File::open(path).ok()?, std::ffi::CString::new(name).unwrap());
    let mut value = vec![0; 1 << 12];
    let length = sandbox_exec::system::file::attribute(file.as_fd(), &name, &mut value).ok()?;
    value.truncate(length);
    Some(value)
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.outgoing = None;
        let _ = self.child.wait();
    }
}

pub fn done(outcome: CallOutcome) -> Result<ToolOutput, ToolError> {
    match outcome {
        CallOutcome::Done(output) => Ok(output),
        CallOutcome::Failed(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

pub fn read_file(path: impl AsRef<Path>) -> ToolCall {
    ToolCall::ReadFile(ReadFile { path: path.as_ref().into(), offset: None, limit: None, inside: false })
}

pub fn write_file(path: impl AsRef<Path>, content: &str) -> ToolCall {
    ToolCall::WriteFile(WriteFile { path: path.as_ref().into(), content: content.to_owned() })
}

pub fn edit_file(path: impl AsRef<Path>, edits: &[(&str, &str)]) -> ToolCall {
    let edit = |&(old, new): &(&str, &str)| Edit {
        old_string: old.to_owned(),
        new_string: new.to_owned(),
        replace_all: false,
    };
    ToolCall::EditFile(EditFile { path: path.as_ref().into(), edits: edits.iter().map(edit).collect() })
}

//! Files that each step of a plan changes, found by comparing snapshots of the project.

use std::sync::Arc;

use agent::core::{STEP_BEGINS, STEP_CHANGES};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gate::tools::ServedCall;
use ipc::path::WirePath;
use tokio::sync::Mutex;

use crate::engine::driver::{Caller, ServedAnswer, SnapshotTaker, ToolServer};
use crate::journal::changes::{Base, ProjectPath};

/// Maximum number of changed files listed for one step.
const MOST: usize = 1000;

pub(super) struct StepChanges {
    observer: SnapshotTaker,
    last: Arc<Mutex<Option<Base>>>,
}

impl StepChanges {
    pub(super) fn new(observer: SnapshotTaker) -> Self {
        Self { observer, last: Arc::default() }
    }
}

impl ToolServer for StepChanges {
    fn serve(&self, _: &Caller, call: ServedCall) -> BoxFuture<'static, Result<ServedAnswer, String>> {
        let begins = match call {
            ServedCall::Supervisor(call) if call.tool == STEP_CHANGES => call.json == STEP_BEGINS,
            ServedCall::Supervisor(_) | ServedCall::External(_) | ServedCall::Fetch(_) => {
                return std::future::ready(Err("this tool is not available here".to_owned())).boxed();
            }
        };
        let (observer, last) = (self.observer.clone(), Arc::clone(&self.last));
        async move { changed(observer, &last, begins).await.map(ServedAnswer::from) }.boxed()
    }
}

/// Returns the files that changed since the last step ended, or since the first step began, as JSON.
async fn changed(
    observer: SnapshotTaker,
    last: &Mutex<Option<Base>>,
    begins: bool,
) -> Result<String, String> {
    let mut last = last.lock().await;
    if begins && last.is_some() {
        return Ok("[]".to_owned());
    }
    let project = observer.confinement.project.clone();
    let now = observer.stamps().await.map_err(|error| error.to_string())?;
    let paths = last.as_ref().map(|before| before.stamped_since(&now));
    *last = Some(Base::of_stamps(now));
    let absolute = |path: &ProjectPath| WirePath::from(project.as_path().join(path.to_wire().as_path()));
    match paths {
        Some(paths) => {
            let files: Vec<_> = paths.iter().take(MOST).map(absolute).collect();
            serde_json::to_string(&files).map_err(|error| error.to_string())
        }
        None if begins => Ok("[]".to_owned()),
        None => Err("the project's files were not checked before this step".to_owned()),
    }
}

//! Stub.
use crate::directories::Directories;
use ipc::id::ConversationId;
use ipc::path::WirePath;
use std::path::PathBuf;
pub struct Store(PathBuf);
pub struct StoredPlan {
    pub id: String,
    pub path: PathBuf,
}
impl Store {
    pub fn at(d: &Directories) -> Self {
        Self(d.state.join("plans"))
    }
    pub fn create(
        &self,
        _p: &WirePath,
        _s: Option<&ConversationId>,
        text: &str,
    ) -> std::io::Result<StoredPlan> {
        std::fs::create_dir_all(&self.0)?;
        self.write("plan", text)
    }
    pub fn write(&self, id: &str, text: &str) -> std::io::Result<StoredPlan> {
        let path = self.0.join(format!("{id}.md"));
        std::fs::write(&path, text)?;
        Ok(StoredPlan { id: id.into(), path })
    }
}

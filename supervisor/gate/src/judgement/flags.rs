//! Flags with which a run has no question to ask.

use ipc::rights::Grant;

use super::StandingRights;

impl StandingRights {
    /// The flags that give a run this access from the start; none where no flag gives all of it.
    pub fn flags_for(&self, grant: &Grant) -> Option<String> {
        let mut flags: Vec<_> =
            grant.write.iter().map(|path| self.write_grant(path)).collect::<Option<_>>()?;
        // A question about no more access than there is asks for the act itself.
        if grant.is_empty() {
            flags.push("--mode auto".to_owned());
        }
        let reach = [
            (grant.net.reaches_out(), "--net on"),
            (grant.reach.host, "--reach host"),
            (grant.reach.lan, "--reach lan"),
            (grant.reach.link_local, "--reach link-local"),
            (grant.reach.metadata, "--reach metadata"),
        ];
        flags.extend(reach.iter().filter(|(is_asked, _)| *is_asked).map(|(_, flag)| (*flag).to_owned()));
        flags.dedup();
        Some(flags.join(" "))
    }
}

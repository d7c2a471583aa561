use ipc::rights::Grant;

use super::StandingRights;

impl StandingRights {
    /// The flags that give a session this access from its start. `None` if flags cannot give all of it.
    pub fn flags_for(&self, grant: &Grant) -> Option<String> {
        let mut flags: Vec<_> =
            grant.write.iter().map(|path| self.write_grant(path)).collect::<Option<_>>()?;
        // An approval without additional access is for the action itself.
        if grant.is_empty() {
            flags.push("--mode auto".to_owned());
        }
        if grant.net.hosts().is_some() {
            flags.push(self.flag_for_network(&grant.net));
        }
        let reach = [
            (grant.net.reaches_out() && grant.net.hosts().is_none(), "--net on"),
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

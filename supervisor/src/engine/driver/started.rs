//! Log entries for the start and the end of a worker.

use ipc::confinement::Confinement;
use protocol::error_code::ErrorCode;
use protocol::event::{WorkerEnd, WorkerStarted};

use super::boundary::StartedWorker;
use super::digest::Digests;

/// Returns the event for a worker that is ready. `confinement` has paths of the host.
pub(super) fn worker_started(worker: &StartedWorker, confinement: &Confinement) -> WorkerStarted {
    let digests = Digests::new(confinement, &worker.ruleset);
    WorkerStarted {
        generation: worker.generation,
        pid: worker.pid,
        tier: worker.ruleset.tier,
        landlock_abi: worker.ruleset.landlock_abi,
        rules: worker.ruleset.rules,
        rights: confinement.summary().into(),
        rights_digest: digests.rights,
        ruleset_digest: digests.ruleset,
        one_shot: None,
        no_full_tier: worker.ruleset.no_full_tier.as_ref().map(|reason| reason.detail.clone()),
        not_enforced: worker.ruleset.missing.clone(),
        startup_us: u64::try_from(worker.startup.as_micros()).unwrap_or(u64::MAX),
    }
}

/// Returns a clause about the reason why a worker's calls were lost.
pub(super) fn lost_with(end: &WorkerEnd) -> String {
    let words = match end {
        WorkerEnd::BrokerSignalled { signal } => {
            format!("the broker of its worker was ended by signal {signal}")
        }
        end => format!("its worker {end}"),
    };
    if *end == WorkerEnd::RunOver { words } else { ErrorCode::WorkerDied.mark(&words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_call_names_the_process_that_ended() {
        assert_eq!(
            lost_with(&WorkerEnd::Signalled { signal: 9 }),
            "its worker ended by signal 9 [worker-died]"
        );
        let broker = WorkerEnd::BrokerSignalled { signal: 9 };
        assert_eq!(lost_with(&broker), "the broker of its worker was ended by signal 9 [worker-died]");
    }
}

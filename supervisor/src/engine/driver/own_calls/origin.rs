//! Origin of a call to a worker, encoded in the call's id.

use ipc::id::CallId;

/// Bit that is set in the ids of the supervisor's own calls. The core numbers the model's calls from 1.
const OWN: u64 = 1 << 63;

/// Bits with the number of a call of the supervisor's own. The bits between these and [`OWN`] have the call's purpose.
const COUNT: u64 = u32::MAX as u64;

/// Call that the supervisor itself sends, with its number: for instructions the index of a file, else counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::driver) enum OwnCall {
    Instructions(u8),
    FileNames(u32),
    Branch(u32),
}

impl OwnCall {
    pub(in crate::engine::driver) fn id(self) -> CallId {
        let own = |purpose: u64, count: u32| CallId(OWN | purpose << 32 | u64::from(count));
        match self {
            Self::Instructions(at) => own(0, at.into()),
            Self::FileNames(count) => own(1, count),
            Self::Branch(count) => own(2, count),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::driver) enum CallOrigin {
    Model(CallId),
    /// Rewind of files. It has no number, since each one-shot worker of a rewind carries out one effect.
    Rewind,
    Own(OwnCall),
}

impl CallOrigin {
    pub(in crate::engine::driver) fn id(self) -> CallId {
        match self {
            Self::Rewind => CallId(0),
            Self::Model(call) => call,
            Self::Own(own) => own.id(),
        }
    }

    /// Returns the origin of the call with this id; `None` if no call has such an id.
    pub(in crate::engine::driver) fn of(call: CallId) -> Option<Self> {
        if call.0 & OWN == 0 {
            return Some(if call.0 == 0 { Self::Rewind } else { Self::Model(call) });
        }
        let count = u32::try_from(call.0 & COUNT).ok()?;
        let own = match (call.0 & !OWN) >> 32 {
            0 => OwnCall::Instructions(u8::try_from(count).ok()?),
            1 => OwnCall::FileNames(count),
            2 => OwnCall::Branch(count),
            _ => return None,
        };
        Some(Self::Own(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_origin_has_ids_of_its_own() {
        let origins = [
            CallOrigin::Rewind,
            CallOrigin::Model(CallId(1)),
            CallOrigin::Model(CallId(OWN - 1)),
            CallOrigin::Own(OwnCall::Instructions(0)),
            CallOrigin::Own(OwnCall::Instructions(u8::MAX)),
            CallOrigin::Own(OwnCall::FileNames(0)),
            CallOrigin::Own(OwnCall::FileNames(u32::MAX)),
            CallOrigin::Own(OwnCall::Branch(0)),
            CallOrigin::Own(OwnCall::Branch(u32::MAX)),
        ];
        assert_eq!(origins.map(|origin| CallOrigin::of(origin.id())), origins.map(Some));
        // The scripted workers of tests use this bit to recognise the supervisor's own calls.
        let own = origins.map(|origin| origin.id().0 & OWN != 0);
        assert_eq!(own, [false, false, false, true, true, true, true, true, true]);
    }

    #[test]
    fn an_id_of_no_purpose_has_no_origin() {
        for id in [OWN | 1 << 8, OWN | 3 << 32, u64::MAX] {
            assert_eq!(CallOrigin::of(CallId(id)), None, "{id:#x}");
        }
    }
}

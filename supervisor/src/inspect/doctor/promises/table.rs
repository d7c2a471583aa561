//! The promises of SECURITY.md in their order. A test compares this table with that file.

use super::{Holder, Promise};

use Holder::{Broker, Groups, Memory, Nobody, Processes, Scopes, Supervisor};

const fn kernel(by: &'static str) -> Holder {
    Holder::Kernel(by)
}

const fn both(holder: Holder) -> [Holder; 2] {
    [holder, holder]
}

/// All promises. Of two enforcing parts, the first is for the full tier.
pub(super) const PROMISES: &[Promise] = &[
    Promise {
        name: "write outside",
        says: "nothing outside the project, the temp directory and allowed directories is changed",
        holders: [kernel("read-only mounts and Landlock"), kernel("Landlock")],
        acts: &[
            "write the home",
            "write /proc/self/comm",
            "write outside the writable directories",
            "write to the read-only tree",
        ],
    },
    Promise {
        name: "metadata outside",
        says: "modes, owners, times and attributes there stay as they are",
        holders: [
            kernel("read-only mounts"),
            Broker("it makes each such change itself, of the file that the kernel opened"),
        ],
        acts: &["change an attribute outside the writable directories"],
    },
    Promise {
        name: "leases and notifications",
        says: "no process in the sandbox delays or watches others that open files",
        holders: both(kernel("seccomp")),
        acts: &["take a lease"],
    },
    Promise {
        name: "set-id bits, device nodes",
        says: "no set-id program or device is created, and only harmless devices are opened",
        holders: [kernel("seccomp, nosuid and nodev mounts, a /dev of its own"), kernel("seccomp, Landlock")],
        acts: &["set a set-id bit", "open the kernel's log"],
    },
    Promise {
        name: "signals",
        says: "no process outside is signalled, nor a worker by its command",
        holders: [
            kernel("a pid namespace; Landlock's scopes, or the broker below ABI 6"),
            Scopes {
                kernel: "Landlock's scopes",
                broker: "it sends each signal itself; from Linux 6.12 on the kernel holds it",
            },
        ],
        acts: &["signal the parent", "signal the broker", "find the process that started this one"],
    },
    Promise {
        name: "memory of other processes",
        says: "no process outside is traced, read by ptrace, process_vm_readv, pidfd_getfd or /proc, or limited",
        holders: [kernel("a pid namespace, Landlock, seccomp"), kernel("Landlock, seccomp")],
        acts: &["trace the parent", "read the parent's environment"],
    },
    Promise {
        name: "priorities and affinity",
        says: "the scheduling of other processes does not change",
        holders: [
            kernel("a pid namespace"),
            Nobody(
                "for processes of the same user without capabilities the kernel asks for no more than that",
            ),
        ],
        acts: &[],
    },
    Promise {
        name: "daemons",
        says: "nothing that a call started outlives it",
        holders: [
            kernel("a pid namespace; each command's reaper ends what descends from it"),
            Supervisor("each command's reaper, and the broker, end what descends from them"),
        ],
        acts: &[],
    },
    Promise {
        name: "survivors",
        says: "nothing lives on where supervisor and broker are killed in the same instant",
        holders: [kernel("a pid namespace, which ends with its first process"), Groups],
        acts: &[],
    },
    Promise {
        name: "unix sockets",
        says: "no socket of a program outside is reached by its path or a descriptor",
        holders: both(Broker("it makes each connection itself, to the socket that the kernel names")),
        acts: &["reach a unix socket outside"],
    },
    Promise {
        name: "abstract unix sockets",
        says: "no socket of a program outside is reached by an abstract name",
        holders: [
            Scopes {
                kernel: "a network namespace; with the network on, Landlock's scopes",
                broker: "a network namespace holds it; with the network on it asks the kernel whose the name is, before and \
                         after each connection: a name that changes hands in between is reached",
            },
            Scopes {
                kernel: "Landlock's scopes, on the program and on the broker that connects for it",
                broker: "it asks the kernel whose the name is, before and after each connection: a name that changes hands in \
                         between is reached",
            },
        ],
        acts: &["reach an abstract unix socket"],
    },
    Promise {
        name: "IPC",
        says: "no System V object, POSIX queue, key or shared memory of others is reached",
        holders: [
            kernel("an ipc namespace, a /dev/shm of its own, seccomp"),
            Broker("it asks whose a System V object is; seccomp and Landlock deny the rest"),
        ],
        acts: &["use a kernel keyring"],
    },
    Promise {
        name: "network off",
        says: "no data leaves, and no connection comes in",
        holders: [
            kernel("a network namespace, seccomp"),
            Broker("it makes the sockets, bound to the loopback device; seccomp denies every other kind"),
        ],
        acts: &[
            "reach the network",
            "reach the network over IPv6",
            "open a raw socket",
            "open a packet socket",
            "open a vsock socket",
            "open a crypto socket",
        ],
    },
    Promise {
        name: "after :net off",
        says: "earlier connections and daemons have ended when the command returns",
        holders: both(Supervisor("the old worker and all its processes are ended first")),
        acts: &[],
    },
    Promise {
        name: "network on",
        says: "this machine, private networks and the metadata service have to be allowed separately",
        holders: both(Broker("it judges each address, and makes the connection itself")),
        acts: &[],
    },
    Promise {
        name: "ports of the host's services",
        says: "no port of a service outside is shared or taken over",
        holders: both(Broker("it asks the kernel who holds a port, before and after it binds")),
        acts: &[],
    },
    Promise {
        name: "kernel and host",
        says: "no mount, namespace, module, io_uring, BPF program or call that is newer than our review",
        holders: both(kernel("seccomp, no capabilities")),
        acts: &["make a user namespace", "use io_uring", "change the mounts"],
    },
    Promise {
        name: "secrets",
        says: "no hidden file is read under any of its names",
        holders: [kernel("masks and Landlock"), kernel("Landlock")],
        acts: &["read a hidden file"],
    },
    Promise {
        name: "information",
        says: "names and sizes of what is hidden, and other processes, are not seen",
        holders: [
            kernel("masks, a pid namespace"),
            Nobody("/proc shows every process of the machine, and Landlock denies neither stat nor inotify"),
        ],
        acts: &[],
    },
    Promise {
        name: "the API key",
        says: "no process in the sandbox sees the key in its environment, memory, files or messages",
        holders: both(Supervisor("the key never leaves the supervisor, which no process may trace or dump")),
        acts: &[],
    },
    Promise {
        name: "files the host runs later",
        says: "only you change hooks, git's configuration and settings that run programs",
        holders: [
            Supervisor("read-only mounts hold what is there; new ones are moved aside when the call ends"),
            Supervisor("they are restored or moved aside when the call ends, and can be changed until then"),
        ],
        acts: &[],
    },
    Promise {
        name: "private temps",
        says: "no worker reaches the temp directory of another",
        holders: [
            kernel("masks, Landlock"),
            kernel("Landlock; names in one can be listed by who knows its own"),
        ],
        acts: &[],
    },
    Promise {
        name: "number of processes",
        says: "a fork bomb is bounded",
        holders: both(Processes),
        acts: &[],
    },
    Promise {
        name: "memory",
        says: "a program that takes all memory is bounded",
        holders: both(Memory),
        acts: &[],
    },
    Promise {
        name: "the terminal",
        says: "no key is typed into the user's terminal, and no escape sequence programs it",
        holders: both(kernel("no terminal, or one of its own; seccomp")),
        acts: &["open /dev/tty"],
    },
    Promise {
        name: "caches, build directories, search paths and homes that the environment names",
        says: "nothing written with less access is executed with more access from there",
        holders: [
            Supervisor("a place for each level of access; copies from more access to less"),
            Supervisor("a place for each level of access; copies from more access to less"),
        ],
        acts: &[],
    },
    Promise {
        name: "approvals",
        says: "nothing runs but what was shown and approved",
        holders: both(Supervisor("digests, and a worker for each approved change")),
        acts: &[],
    },
    Promise {
        name: "settings",
        says: "settings of a project narrow, until the person trusts them",
        holders: both(Supervisor("trust covers the exact content of one file at one path")),
        acts: &[],
    },
    Promise {
        name: "bytes of a worker, a hostile repository",
        says: "they lead to clear errors",
        holders: both(Supervisor("a table of phases, limits, deadlines")),
        acts: &[],
    },
];

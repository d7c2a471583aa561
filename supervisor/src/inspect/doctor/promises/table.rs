//! The promises of SECURITY.md in their order. A test compares this table with that file.

use super::{Holder, Promise};

use Holder::{Broker, Groups, Memory, Nobody, Processes, Scopes, Supervisor};

const fn kernel(by: &'static str) -> Holder {
    Holder::Kernel(by)
}

const fn both(holder: Holder) -> [Holder; 2] {
    [holder, holder]
}

/// All promises. Each names the part that enforces it in the full tier, then the one in the floor tier.
pub(super) const PROMISES: &[Promise] = &[
    Promise {
        name: "write outside",
        says: "nothing outside the project, the temp directory and allowed directories is changed",
        holders: [
            kernel("read-only mounts and Landlock block such writes"),
            kernel("Landlock blocks such writes"),
        ],
        acts: &[
            "write the home",
            "write /proc/self/comm",
            "write outside the writable directories",
            "write to the read-only tree",
        ],
    },
    Promise {
        name: "metadata outside",
        says: "modes, owners, times and attributes of files outside the writable directories do not change",
        holders: [
            kernel("read-only mounts block such changes"),
            Broker("the broker makes each such change itself, on the file that the kernel opened"),
        ],
        acts: &["change an attribute outside the writable directories"],
    },
    Promise {
        name: "leases and notifications",
        says: "no process in the sandbox delays or watches others that open files",
        holders: both(kernel("seccomp blocks leases and notifications")),
        acts: &["take a lease"],
    },
    Promise {
        name: "set-id bits, device nodes",
        says: "no set-id program or device is created, and only harmless devices are opened",
        holders: [
            kernel(
                "seccomp and nosuid, nodev mounts block set-id programs and devices; the sandbox has its own /dev",
            ),
            kernel("seccomp and Landlock block set-id programs and devices"),
        ],
        acts: &["set a set-id bit", "open the kernel's log"],
    },
    Promise {
        name: "signals",
        says: "no process outside gets a signal, and no command sends a signal to its worker",
        holders: [
            kernel(
                "a pid namespace hides processes outside; Landlock's scopes, or the broker below ABI 6, protect the worker",
            ),
            Scopes {
                kernel: "Landlock's scopes block signals to processes outside",
                broker: "the broker sends each allowed signal itself; from Linux 6.12 on, the kernel blocks the others",
            },
        ],
        acts: &["signal the parent", "signal the broker", "find the process that started this one"],
    },
    Promise {
        name: "memory of other processes",
        says: "no process outside is traced, limited, or read by ptrace, process_vm_readv, pidfd_getfd or /proc",
        holders: [
            kernel("a pid namespace, Landlock and seccomp block such access"),
            kernel("Landlock and seccomp block such access"),
        ],
        acts: &["trace the parent", "read the parent's environment"],
    },
    Promise {
        name: "priorities and affinity",
        says: "the scheduling of other processes does not change",
        holders: [
            kernel("a pid namespace hides other processes"),
            Nobody(
                "the kernel lets any process change the scheduling of the same user's processes that have no capabilities",
            ),
        ],
        acts: &[],
    },
    Promise {
        name: "daemons",
        says: "no process that a call started outlives the call",
        holders: [
            kernel("in a pid namespace, each command's reaper ends all processes that the command started"),
            Supervisor("each command's reaper, and the broker, end all processes that the command started"),
        ],
        acts: &[],
    },
    Promise {
        name: "survivors",
        says: "no process survives if supervisor and broker are killed at the same instant",
        holders: [kernel("a pid namespace ends all its processes with the first one"), Groups],
        acts: &[],
    },
    Promise {
        name: "unix sockets",
        says: "no socket of a program outside is reached by its path or a descriptor",
        holders: both(Broker("the broker makes each connection itself, to the socket that the kernel names")),
        acts: &["reach a unix socket outside"],
    },
    Promise {
        name: "abstract unix sockets",
        says: "no socket of a program outside is reached by an abstract name",
        holders: [
            Scopes {
                kernel: "a network namespace blocks such connections; with the network on, Landlock's scopes block them",
                broker: "a network namespace blocks such connections; with the network on, the broker asks the kernel who owns the name, before and after each connection: if the owner changes in between, a program outside can be reached",
            },
            Scopes {
                kernel: "Landlock's scopes restrict the program, and the broker that connects for the program",
                broker: "the broker asks the kernel who owns the name, before and after each connection: if the owner changes in between, a program outside can be reached",
            },
        ],
        acts: &["reach an abstract unix socket"],
    },
    Promise {
        name: "IPC",
        says: "no System V object, POSIX queue, key or shared memory of others is reached",
        holders: [
            kernel("an ipc namespace, a private /dev/shm and seccomp block such access"),
            Broker("the broker checks who owns a System V object; seccomp and Landlock block the rest"),
        ],
        acts: &["use a kernel keyring"],
    },
    Promise {
        name: "network off",
        says: "no data leaves the sandbox, and no connection comes in",
        holders: [
            kernel("a network namespace and seccomp block the network"),
            Broker(
                "the broker makes the sockets, bound to the loopback device; seccomp blocks every other kind",
            ),
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
        says: "earlier connections and daemons have ended when :net off returns",
        holders: both(Supervisor("the supervisor ends the old worker and all its processes first")),
        acts: &[],
    },
    Promise {
        name: "network on",
        says: "this machine, private networks and the metadata service have to be allowed separately",
        holders: both(Broker("the broker checks each address, and makes the connection itself")),
        acts: &[],
    },
    Promise {
        name: "ports of the host's services",
        says: "no port of a service outside is shared or taken over",
        holders: both(Broker(
            "the broker asks the kernel who uses a port, before and after it binds the port",
        )),
        acts: &[],
    },
    Promise {
        name: "kernel and host",
        says: "no process in the sandbox uses a mount, namespace, module, io_uring, BPF program or system call that is newer than our review",
        holders: both(kernel("seccomp blocks such calls, and processes have no capabilities")),
        acts: &["make a user namespace", "use io_uring", "change the mounts"],
    },
    Promise {
        name: "secrets",
        says: "no hidden file is read under any of its names",
        holders: [
            kernel("mounts over hidden files, and Landlock, block reads of hidden files"),
            kernel("Landlock blocks reads of hidden files"),
        ],
        acts: &["read a hidden file"],
    },
    Promise {
        name: "information",
        says: "no process in the sandbox sees names and sizes of hidden files, or other processes",
        holders: [
            kernel("mounts cover hidden files, and a pid namespace hides other processes"),
            Nobody("/proc shows every process of the machine, and Landlock denies neither stat nor inotify"),
        ],
        acts: &[],
    },
    Promise {
        name: "the API key",
        says: "no process in the sandbox sees the key in its environment, memory, files or messages",
        holders: both(Supervisor("the key never leaves the supervisor, which no process can trace or dump")),
        acts: &[],
    },
    Promise {
        name: "files the host runs later",
        says: "only you can change hooks, git's configuration and settings that run programs",
        holders: [
            Supervisor(
                "read-only mounts protect existing files; new files are moved aside when the call ends",
            ),
            Supervisor(
                "the files can be changed during a call; changes are undone or moved aside when the call ends",
            ),
        ],
        acts: &[],
    },
    Promise {
        name: "private temps",
        says: "no worker reaches the temp directory of another worker",
        holders: [
            kernel("mounts over other temp directories, and Landlock, block access"),
            kernel(
                "Landlock blocks access to files of other workers; a worker that knows the random name of a temp directory can list the names there",
            ),
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
        says: "nothing is typed into the user's terminal, and no escape sequence controls the terminal",
        holders: both(kernel(
            "the sandbox has no terminal, or one of its own; seccomp blocks typing into another",
        )),
        acts: &["open /dev/tty"],
    },
    Promise {
        name: "caches, build directories, search paths and homes that the environment names",
        says: "files written there with less access are not executed with more access",
        holders: [
            Supervisor(
                "each level of access has its own directories; copies are made only from more access to less",
            ),
            Supervisor(
                "each level of access has its own directories; copies are made only from more access to less",
            ),
        ],
        acts: &[],
    },
    Promise {
        name: "approvals",
        says: "nothing runs but what was shown and approved",
        holders: both(Supervisor(
            "the supervisor compares digests, and starts a worker for each approved change",
        )),
        acts: &[],
    },
    Promise {
        name: "settings",
        says: "settings of a project can only restrict agents, until you trust these settings",
        holders: both(Supervisor("your trust covers only the exact content of one file at one path")),
        acts: &[],
    },
    Promise {
        name: "messages of a worker, files of a hostile repository",
        says: "invalid messages and files lead to clear errors",
        holders: both(Supervisor(
            "the supervisor checks each message against a table of phases, limits and deadlines",
        )),
        acts: &[],
    },
];

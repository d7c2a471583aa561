/// Directories of the system's programs. Every MCP server may read them.
pub const SYSTEM: [&str; 15] = [
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    "/proc",
    "/sys",
    "/dev",
];

//! Kernel constants in the conditions of rules, equal on both architectures; a test compares them with libc.

pub const EPERM: u32 = 1;
pub const ENOSYS: u32 = 38;

pub const CLONE_NEWNS: u32 = 0x0002_0000;
pub const CLONE_NEWCGROUP: u32 = 0x0200_0000;
pub const CLONE_NEWUTS: u32 = 0x0400_0000;
pub const CLONE_NEWIPC: u32 = 0x0800_0000;
pub const CLONE_NEWUSER: u32 = 0x1000_0000;
pub const CLONE_NEWPID: u32 = 0x2000_0000;
pub const CLONE_NEWNET: u32 = 0x4000_0000;

pub const O_ACCMODE: u32 = 0o3;
pub const O_CREAT: u32 = 0o100;
pub const O_TRUNC: u32 = 0o1000;
/// Bit of `O_TMPFILE` without that of `O_DIRECTORY`. The latter differs between architectures.
pub const O_TMPFILE_ALONE: u32 = 0o20_000_000;

// Commands of fcntl(2) (`linux/fcntl.h`).
pub const F_SETLEASE: u32 = 1024;
pub const F_NOTIFY: u32 = 1026;
/// Command of fcntl(2), since Linux 6.19.
pub const F_SETDELEG: u32 = 1040;

pub const S_ISUID: u32 = 0o4000;
pub const S_ISGID: u32 = 0o2000;

pub const AF_UNIX: u32 = 1;
pub const AF_INET: u32 = 2;
pub const AF_INET6: u32 = 10;
pub const AF_NETLINK: u32 = 16;
/// Mask of the type in the second argument of socket(2); higher bits are `SOCK_CLOEXEC` and `SOCK_NONBLOCK`.
pub const SOCK_TYPE_MASK: u32 = 0xf;
pub const SOCK_DGRAM: u32 = 2;
pub const SOCK_RAW: u32 = 3;
pub const SOCK_RDM: u32 = 4;
pub const SOCK_SEQPACKET: u32 = 5;
pub const SOCK_DCCP: u32 = 6;
/// Obsolete socket type. Such sockets still receive all packets (`packet(7)`).
pub const SOCK_PACKET: u32 = 10;
pub const NETLINK_ROUTE: u32 = 0;
/// TCP as a protocol (`in.h`), and as the level of its socket options.
pub const IPPROTO_TCP: u32 = 6;
pub const IPPROTO_UDP: u32 = 17;
pub const TCP_SYNCNT: u32 = 7;
pub const TCP_FASTOPEN_CONNECT: u32 = 30;
pub const TCP_ULP: u32 = 31;
/// Level of the socket options of IPv4 (`in.h`).
pub const IPPROTO_IP: u32 = 0;
pub const IPPROTO_IPV6: u32 = 41;
pub const IP_OPTIONS: u32 = 4;
// The first, a later and the last of the options that join and leave groups, 35 to 48 (`in.h`).
pub const IP_ADD_MEMBERSHIP: u32 = 35;
pub const IP_DROP_MEMBERSHIP: u32 = 36;
pub const IP_DROP_SOURCE_MEMBERSHIP: u32 = 40;
// Options with the same numbers at the levels of IPv4 and IPv6 (`in.h`).
pub const MCAST_JOIN_GROUP: u32 = 42;
pub const MCAST_UNBLOCK_SOURCE: u32 = 44;
pub const MCAST_MSFILTER: u32 = 48;
/// Socket option that joins a multicast group; the next number is the option that leaves one (`in6.h`).
pub const IPV6_JOIN_GROUP: u32 = 20;
pub const IPV6_JOIN_ANYCAST: u32 = 27;
pub const IPV6_LEAVE_ANYCAST: u32 = 28;
/// Socket option that limits the ports which the kernel chooses, since Linux 6.3 (`in.h`).
pub const IP_LOCAL_PORT_RANGE: u32 = 51;
pub const SOL_SOCKET: u32 = 1;
pub const SO_ATTACH_REUSEPORT_CBPF: u32 = 51;
pub const SO_ATTACH_REUSEPORT_EBPF: u32 = 52;
pub const SO_DETACH_REUSEPORT_BPF: u32 = 68;
pub const IPV6_ADDRFORM: u32 = 1;
pub const IPV6_2292RTHDR: u32 = 5;
pub const IPV6_2292PKTOPTIONS: u32 = 6;
pub const IPV6_RTHDR: u32 = 57;

pub const PR_SET_MM: u32 = 35;

pub const TIOCSTI: u32 = 0x5412;
pub const TIOCLINUX: u32 = 0x541C;
pub const TIOCSETD: u32 = 0x5423;

pub const FS_IOC_SETFLAGS: u32 = 0x4008_6602;
pub const FS_IOC_SETVERSION: u32 = 0x4008_7602;
/// Command of ioctl(2) from `fs/ext4/ext4.h`, in no public header: `FS_IOC_SETVERSION` for ext4 alone.
pub const EXT4_IOC_SETVERSION: u32 = 0x4008_6604;
pub const FS_IOC_FSSETXATTR: u32 = 0x401C_5820;

pub const FAT_IOCTL_SET_ATTRIBUTES: u32 = 0x4004_7211;

pub const FS_IOC_ENABLE_VERITY: u32 = 0x4080_6685;
pub const FS_IOC_SET_ENCRYPTION_POLICY: u32 = 0x800C_6613;
pub const FS_IOC_ADD_ENCRYPTION_KEY: u32 = 0xC050_6617;
pub const FS_IOC_REMOVE_ENCRYPTION_KEY: u32 = 0xC040_6618;

pub const BTRFS_IOC_SNAP_CREATE: u32 = 0x5000_9401;
pub const BTRFS_IOC_SUBVOL_CREATE: u32 = 0x5000_940E;
pub const BTRFS_IOC_SNAP_DESTROY: u32 = 0x5000_940F;
pub const BTRFS_IOC_SNAP_CREATE_V2: u32 = 0x5000_9417;
pub const BTRFS_IOC_SUBVOL_CREATE_V2: u32 = 0x5000_9418;
pub const BTRFS_IOC_SUBVOL_SETFLAGS: u32 = 0x4008_941A;
pub const BTRFS_IOC_SNAP_DESTROY_V2: u32 = 0x5000_943F;

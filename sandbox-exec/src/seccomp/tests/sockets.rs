use super::*;

fn allows(stacked: &[Built], call: calls::Call, [family, kind, protocol]: [i32; 3]) -> bool {
    let arguments = [family, kind, protocol].map(|argument| u64::from(argument.cast_unsigned()));
    stacked.iter().all(|program| answer(*program, call, &arguments) == ALLOW)
}

fn families(stacked: &[Built]) -> Vec<i32> {
    (0..64).filter(|family| allows(stacked, calls::SOCKET, [*family, 1, 0])).collect()
}

#[test]
fn sockets_by_family() {
    let inet = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let all = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    for arch in Arch::ALL {
        let standing = |case| built(RuleKind::Standing, case, arch);
        assert_eq!(families(&[standing(PLAIN)]), [libc::AF_NETLINK]);
        assert_eq!(families(&[standing(Case { network: true, ..PLAIN })]), inet);
        let unix = vec![libc::AF_UNIX, libc::AF_NETLINK];
        for (case, offline) in [(PLAIN, vec![libc::AF_NETLINK]), (MEDIATED, unix.clone()), (FULL, unix)] {
            let on = Case { network: true, ..case };
            assert_eq!(families(&[standing(on), built(RuleKind::Offline, on, arch)]), offline);
            assert_eq!(families(&[standing(on), built(RuleKind::ReadOnly, on, arch)]), [libc::AF_NETLINK]);
            assert_eq!(families(&[standing(on), built(RuleKind::ReadOnlyOnline, on, arch)]), inet);
        }
        for network in [false, true] {
            assert_eq!(families(&[standing(Case { network, ..FULL })]), all);
            assert_eq!(families(&[standing(Case { network, ..MEDIATED })]), all);
        }
    }
}

#[test]
fn sockets_by_type_and_protocol() {
    for case in [Case { network: true, ..PLAIN }, MEDIATED, FULL, Case { network: true, ..FULL }] {
        for program in standing(case) {
            internet_and_netlink_sockets(&|family, kind, protocol| {
                allows(&[program], calls::SOCKET, [family, kind, protocol])
            });
        }
    }
}

fn internet_and_netlink_sockets(socket: &dyn Fn(i32, i32, i32) -> bool) {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    for family in [libc::AF_INET, libc::AF_INET6] {
        assert!(socket(family, libc::SOCK_STREAM | flags, 0));
        assert!(socket(family, libc::SOCK_DGRAM | flags, libc::IPPROTO_UDP));
        assert!(!socket(family, libc::SOCK_RAW | flags, libc::IPPROTO_TCP));
        assert!(!socket(family, libc::SOCK_STREAM, libc::IPPROTO_MPTCP));
        assert!(!socket(family, libc::SOCK_STREAM, libc::IPPROTO_SCTP));
        assert!(!socket(family, libc::SOCK_SEQPACKET, 0));
        assert!(!socket(family, 10, 0));
    }
    assert!(socket(libc::AF_NETLINK, libc::SOCK_RAW | flags, libc::NETLINK_ROUTE));
    assert!(!socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT));
}

fn group_options() -> impl Iterator<Item = [u64; 3]> {
    let of_ipv6 = [20, 21, 27, 28].into_iter().chain(42..=48);
    (35..=48).map(|name| [0, 0, name]).chain(of_ipv6.map(|name| [0, 41, name]))
}

#[test]
fn groups_are_joined_where_the_network_is_private_or_leads_to_neighbours() {
    let on = |case| Case { network: true, ..case };
    let neighbours = |case| Case { neighbours: true, ..case };
    for (case, expected) in [
        (FULL, ALLOW),
        (neighbours(on(FULL)), ALLOW),
        (neighbours(on(MEDIATED)), ALLOW),
        (on(FULL), errno(libc::EPERM)),
        (on(MEDIATED), errno(libc::EPERM)),
        (MEDIATED, errno(libc::EPERM)),
        (neighbours(MEDIATED), errno(libc::EPERM)),
    ] {
        for program in standing(case) {
            for arguments in group_options() {
                assert_eq!(
                    answer(program, calls::SETSOCKOPT, &arguments),
                    expected,
                    "{arguments:?} {case:?}"
                );
            }
            // IP_MULTICAST_IF, IP_MULTICAST_LOOP, IP_UNICAST_IF; IPV6_V6ONLY, IPV6_MTU, IPV6_RECVPKTINFO.
            for (level, name) in [(0, 32), (0, 34), (0, 50), (41, 26), (41, 24), (41, 49)] {
                assert_eq!(answer(program, calls::SETSOCKOPT, &[0, level, name]), ALLOW, "{level} {name}");
            }
        }
    }
}

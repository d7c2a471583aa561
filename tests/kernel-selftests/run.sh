#!/usr/bin/env bash
# Builds the kernel's own Landlock and seccomp tests, runs them outside of the sandbox and in both tiers, and compares
# the results with docs/selftests.md. This repository contains no sources of the kernel: they come from Debian's
# linux-source-*.
#
#   tests/kernel-selftests/run.sh [--table]     --table prints every difference, instead of comparing
#
# LINUX_SOURCE names the archive of the sources (default: the newest /usr/src/linux-source-*.tar.xz), BAILIWICK the
# program (default: target/debug/bailiwick). The built tests are kept below $XDG_CACHE_HOME.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/bailiwick-kernel-selftests"
export BAILIWICK="${BAILIWICK:-$here/../../target/debug/bailiwick}"
export PYTHONDONTWRITEBYTECODE=1

skip() {
    echo "skipped: $*" >&2
    exit 0
}

# Outside of the sandbox, these tests mount file systems and make network namespaces. Where they cannot, there is
# nothing to compare.
[[ $(id -u) == 0 ]] || skip "the kernel's selftests want root outside"
for tool in python3 cc make tar xz rsync setpriv; do
    command -v "$tool" >/dev/null || skip "no $tool on this machine"
done
[[ -e /usr/include/sys/capability.h ]] || skip "no sys/capability.h on this machine (libcap-dev)"
[[ -x $BAILIWICK ]] || skip "no program at $BAILIWICK; build it, or name it by BAILIWICK"
sources=${LINUX_SOURCE:-$(find /usr/src -maxdepth 1 -name 'linux-source-*.tar.xz' | sort -V | tail -n 1)}
[[ -r $sources ]] || skip "no sources of the kernel here (Debian: apt-get install linux-source)"

case $(uname -m) in
    x86_64) arch=x86 ;;
    aarch64) arch=arm64 ;;
    *) skip "no rules for $(uname -m)" ;;
esac

# The tests need the headers of their own kernel version, because the machine's may be older.
build() {
    local tree="$cache/sources" selftests="$cache/sources/tools/testing/selftests" directory
    rm -rf "$cache"
    mkdir -p "$tree"
    echo "unpacking $sources and building its tests; this takes a minute, once" >&2
    tar -xf "$sources" -C "$tree" --strip-components 1 --wildcards --no-wildcards-match-slash \
        '*/Makefile' '*/Kbuild' '*/scripts' '*/include' "*/arch/$arch" '*/usr/include' '*/tools/include' \
        "*/tools/arch/$arch/include" '*/tools/testing/selftests/*.h' '*/tools/testing/selftests/lib.mk' \
        '*/tools/testing/selftests/landlock' '*/tools/testing/selftests/seccomp' '*/tools/testing/selftests/clone3'
    make -s -C "$tree" headers "ARCH=$arch" >/dev/null
    for directory in landlock seccomp; do
        mkdir -p "$cache/built/$directory"
        make -s -C "$selftests/$directory" "OUTPUT=$cache/built/$directory" "KHDR_INCLUDES=-isystem $tree/usr/include" >/dev/null
    done
    rm -rf "$tree"
    basename "$sources" > "$cache/complete"
}

if [[ ! -e $cache/complete || $(cat "$cache/complete") != "$(basename "$sources")" ]]; then
    build
fi
echo "$(cat "$cache/complete") on Linux $(uname -r)"
exec python3 "$here/compare.py" --built "$cache/built" --list "$here/../../docs/selftests.md" "$@"

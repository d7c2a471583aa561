#!/usr/bin/env bash
# Boots Debian's own kernels in qemu and attacks the sandbox there: bailiwick doctor, demo --attack, and the table of
# attacks of the escape suite, as root and as a plain user, in both tiers. Prints a table for docs/kernels.md.
#
#   tests/kernels/run.sh [SUITE...]        default: bullseye bookworm trixie sid
#
# CHECKS=WORD makes only the checks whose names begin with it: doctor, promises, demo, escape.
# KERNELS is the directory of the fetched kernels and of their logs (default: below $XDG_CACHE_HOME). BAILIWICK_STATIC
# names the directory of a static bailiwick, BAILIWICK_SMALL that of the other two programs (default: those that `just
# kernels` builds), ESCAPE the escape suite.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
built="${BAILIWICK_BUILT:-$root/target/debug}"
static="${BAILIWICK_STATIC:-$root/target/$(uname -m)-unknown-linux-gnu/debug}"
small="${BAILIWICK_SMALL:-$root/target/$(uname -m)-unknown-linux-musl/debug}"
kept="${KERNELS:-${XDG_CACHE_HOME:-$HOME/.cache}/bailiwick-kernels}"
busybox=$(command -v busybox || true)
. "$here/stage.sh"

skip() {
    echo "skipped: $*" >&2
    exit 0
}
for tool in qemu-system-x86_64 mke2fs depmod modprobe cpio gzip xz strip setpriv git dpkg-deb python3 perl; do
    command -v "$tool" >/dev/null || skip "no $tool on this machine (Debian: qemu-system-x86 e2fsprogs kmod cpio xz-utils binutils)"
done
[[ $(uname -m) == x86_64 ]] || skip "kernels of x86_64 alone are fetched"
if [[ -z $busybox ]] || ldd "$busybox" >/dev/null 2>&1; then skip "no static busybox on this machine (Debian: busybox-static)"; fi
escape="${ESCAPE:-$(find "$built/deps" -maxdepth 1 -name 'escape-*' -type f -executable -printf '%T@ %p\n' | sort -rn | head -n 1 | cut -d' ' -f2)}"
for program in "$static/bailiwick" "$small/bailiwick-worker" "$small/sandbox-exec" "$built/probe" "$escape"; do
    [[ -x $program ]] || { echo "no program at $program: just kernels builds them" >&2; exit 1; }
done

work=$(mktemp -d)
qemu=
# shellcheck disable=SC2317
clean_up() {
    [[ -z $qemu ]] || kill "$qemu" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT
mkdir -p "$kept"

# QEMU_ACCEL=kvm is some twenty times as fast if it works. In a virtual machine, qemu may accept it and then hang.
accelerators=(-accel "${QEMU_ACCEL:-tcg}")

# boot RELEASE KERNEL LOG
boot() {
    local log=$3
    : >"$log"
    timeout -s KILL "${BOOT_PATIENCE:-7200}" qemu-system-x86_64 "${accelerators[@]}" -cpu max -smp 2 -m 3072 -nodefaults -no-reboot \
        -display none -serial "file:$log" -kernel "$2" -initrd "$work/initramfs" -append "console=ttyS0 quiet panic=-1 checks=${CHECKS:-}" \
        -drive "file=$work/disk,format=raw,if=virtio,snapshot=on" 2>"$log.qemu" &
    qemu=$!
    wait "$qemu" || true
    qemu=
    grep -q '^== over' "$log" || { echo "$1 did not come to its end: see $log" >&2; tail -n 5 "$log" >&2; return 1; }
}

failed=0
make_root "$work/root"
[[ $# -gt 0 ]] || set -- bullseye bookworm trixie sid
for suite in "$@"; do
    echo "== $suite" >&2
    [[ -n $(find "$kept/$suite/kernel" -name 'vmlinuz*' 2>/dev/null) ]] || "$here/fetch.sh" "$suite" "$kept/$suite" >&2
    rm -rf "$work/root/lib/modules"
    release=$(copy_modules "$kept/$suite/kernel" "$work/root")
    make_initramfs "$work/root" "$release" "$work/initramfs"
    rm -f "$work/disk"
    mke2fs -q -t ext4 -d "$work/root" "$work/disk" 3G
    boot "$release" "$(find "$kept/$suite/kernel" -name 'vmlinuz*' | head -n 1)" "$kept/$suite.log" || failed=1
done
python3 -B "$here/table.py" "$kept"/*.log
exit "$failed"

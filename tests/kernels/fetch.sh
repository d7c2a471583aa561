#!/bin/sh
# Fetches Debian's newest kernel of a suite with apt, without installing it or changing this machine's own lists, and
# unpacks it.
#
#   tests/kernels/fetch.sh SUITE DIRECTORY
set -eu
suite=$1 place=$2
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -v security | head -n 1)}
[ -n "$mirror" ] || { echo "no Debian mirror is known here: name one in DEBIAN_MIRROR" >&2; exit 1; }

mkdir -p "$place/lists/partial" "$place/cache/archives/partial" "$place/packages"
place=$(cd "$place" && pwd)
echo "deb $mirror $suite main" >"$place/sources.list"
: >"$place/status"
of_suite() {
    tool=$1
    shift
    "$tool" -q -o Dir::State="$place" -o Dir::State::lists="$place/lists" -o Dir::State::status="$place/status" \
        -o Dir::Cache="$place/cache" -o Dir::Etc::sourcelist="$place/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o APT::Sandbox::User=root "$@"
}
of_suite apt-get update >/dev/null

# The package depends on the package of one kernel version. Newer suites split that one into kernel and modules.
depends() {
    of_suite apt-cache depends "$1" | sed -n 's/^ *Depends: \(linux-\(image\|base\|binary\|modules\)-[0-9].*\)$/\1/p'
}
image=$(depends "linux-image-$(dpkg --print-architecture)")
cd "$place/packages"
rm -f -- *.deb
# shellcheck disable=SC2046
of_suite apt-get download "$image" $(depends "$image") >/dev/null
rm -rf "$place/kernel"
for package in *.deb; do dpkg-deb -x "$package" "$place/kernel"; done
echo "$image"

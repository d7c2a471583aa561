#!/usr/bin/env bash
# Runs attacks and everyday programs in real containers, under the engine's own default profile. See README.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
built="${BAILIWICK_BUILT:-$root/target/debug}"
static="${BAILIWICK_STATIC:-$root/target/static}"
. "$here/engine.sh"

command -v docker >/dev/null || skip "no docker on this machine (Debian: apt-get install docker.io debootstrap)"
for program in bailiwick bailiwick-worker sandbox-exec probe fake-worker; do
    [[ -x $built/$program ]] || { echo "no $program in $built: cargo build --workspace --bins" >&2; exit 1; }
done
escape="${BAILIWICK_ESCAPE:-$(find "$built/deps" -maxdepth 1 -name 'escape-*' -type f -executable -printf '%T@ %p\n' | sort -rn | head -n 1 | cut -d' ' -f2)}"
[[ -x $escape ]] || { echo "no escape suite in $built/deps: cargo test -p tests --test escape --no-run" >&2; exit 1; }

# Files of Bailiwick that a container sees: the programs where the tests expect them, and the checks.
stage() {
    mkdir -p "$work/stage/debug/deps"
    cp "$built"/{bailiwick,bailiwick-worker,sandbox-exec,probe,fake-worker} "$work/stage/debug/"
    cp "$escape" "$work/stage/debug/deps/escape"
    cp "$here/checks.py" "$here"/{bare,reply}.sh "$root/tests/real-projects/model.py" "$work/stage/"
    (cd "$work/stage" && PYTHONPATH=. python3 -B "$here/replies.py")
    chmod -R a+rX "$work/stage"
}

failed=0
# contained NAME IMAGE FLAGS... -- COMMAND...
contained() {
    local name=$1 of=$2 flags=()
    shift 2
    while [[ $1 != -- ]]; do flags+=("$1"); shift; done
    shift
    local began=$SECONDS
    echo "== $name"
    # Without a network, a container has no IPv6. That does not depend on the profile.
    timeout -s KILL "${PATIENCE:-900}" docker run --rm --name "$(basename "$work")" --network none \
        --sysctl net.ipv6.conf.all.disable_ipv6=0 --sysctl net.ipv6.conf.lo.disable_ipv6=0 \
        -v "$work/stage:/opt/bailiwick:ro" "${flags[@]}" "$of" "$@" || { failed=1; echo "FAILED: $name"; }
    docker rm -f "$(basename "$work")" >/dev/null 2>&1 || true
    echo "$((SECONDS - began)) s"
}

docker version >/dev/null 2>&1 || start_engine
make_images
stage
checks=(python3 -B /opt/bailiwick/checks.py "$@")
contained "as root" "$image" -- "${checks[@]}"
contained "as uid 1000" "$image" --user 1000:1000 -- "${checks[@]}"
contained "without capabilities" "$image" --cap-drop ALL -- "${checks[@]}"
contained "no-new-privileges" "$image" --security-opt no-new-privileges -- "${checks[@]}"
contained "a read-only root" "$image" --read-only --tmpfs /tmp:exec --tmpfs /var/tmp:exec -- "${checks[@]}"
contained "a uid without a name, and no home" "$image" --user 4242 --env HOME= -- "${checks[@]}"
contained "64 MiB of shared memory" "$image" --shm-size 64m -- "${checks[@]}"
contained "duplicates of descriptors" "$image" --cap-add SYS_PTRACE -- "${checks[@]}"
contained "a read-only root without a temp" "$image" --read-only --env PLACE=/dev/shm -- \
    python3 -B /opt/bailiwick/checks.py "no temp"
if [[ ! -x $static/sandbox-exec || ! -x $static/bailiwick-worker || ! -x $static/bailiwick ]]; then
    echo "skipped: nothing but a shell: no static programs in $static (just static)" >&2
elif ! docker image inspect "$bare" >/dev/null 2>&1; then
    echo "skipped: nothing but a shell: no static busybox on this machine (Debian: apt-get install busybox-static)" >&2
else
    cp "$static"/{bailiwick,sandbox-exec,bailiwick-worker} "$work/stage/"
    contained "nothing but a shell" "$bare" -- /bin/sh /opt/bailiwick/bare.sh
fi
exit "$failed"

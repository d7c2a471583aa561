#!/usr/bin/env bash
# `bailiwick batch` in containers of a real engine: six real packages with a bug in each, attacks from inside, and
# kills. See README.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
built="${BAILIWICK_BUILT:-$root/target/debug}"
. "$here/engine.sh"

if [[ ${BAILIWICK_ENGINE:-docker} == podman ]]; then
    podman_here
else
    command -v docker >/dev/null || skip "no docker on this machine (Debian: apt-get install docker.io debootstrap)"
fi
for program in bailiwick bailiwick-worker sandbox-exec; do
    [[ -x $built/$program ]] || { echo "no $program in $built: cargo build --workspace --bins" >&2; exit 1; }
done
[[ ${BAILIWICK_ENGINE:-docker} == podman ]] || docker version >/dev/null 2>&1 || start_engine
make_images
# The programs that the containers get, without the other files of the build's directory.
mkdir "$work/programs"
cp "$built"/{bailiwick,bailiwick-worker,sandbox-exec} "$work/programs/"
chmod -R a+rX "$work/programs"
PYTHONPATH="$root/tests/real-projects" python3 -B "$here/batch.py" "$work" "$image" "$@"

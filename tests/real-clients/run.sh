#!/usr/bin/env bash
# Runs network clients, without a proxy in any variable, by `bailiwick sandbox --net HOST`. See README.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command -v python3 >/dev/null || { echo "skipped: no python3 on this machine" >&2; exit 0; }
export BAILIWICK_PROGRAMS="${BAILIWICK_PROGRAMS:-$here/../../target/debug}"
export PYTHONDONTWRITEBYTECODE=1
unset http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
if [ "${1:-}" = registries ]; then
    exec python3 "$here/registries.py"
fi
flags=-nm
[ "$(id -u)" = 0 ] || flags=-Urnm
exec unshare "$flags" python3 "$here/play.py" "$@"

#!/usr/bin/env bash
# Repairs real projects with bailiwick, driven by a scripted model. See README.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for tool in python3 git; do
    command -v "$tool" >/dev/null || { echo "skipped: no $tool on this machine" >&2; exit 0; }
done
export BAILIWICK="${BAILIWICK:-$here/../../target/debug/bailiwick}"
export BAILIWICK_PROJECT_CACHE="${BAILIWICK_PROJECT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bailiwick-tests}"
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/driver.py" "$@"

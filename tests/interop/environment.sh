# Sourced by the scripts in this directory: paths, required programs, and Python environments that are kept.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/bailiwick-interop"
bailiwick="${BAILIWICK:-$here/../../target/debug/bailiwick}"
export PYTHONDONTWRITEBYTECODE=1

# Exit status of a script if a required program is missing: 2, or 0 with --skip-if-missing.
missing_status=2
if [[ "${1:-}" == --skip-if-missing ]]; then
    missing_status=0
    shift
fi

skip() {
    echo "skipped: $*" >&2
    exit "$missing_status"
}

need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || skip "no $tool on this machine"
    done
}

need_bailiwick() {
    [[ -x "$bailiwick" ]] || skip "no program at $bailiwick; build it, or name it by BAILIWICK"
}

# environment NAME PACKAGE...: makes a Python environment with these packages, unless it exists.
environment() {
    local place="$cache/$1"
    shift
    [[ -e "$place/complete" && "$(cat "$place/complete")" == "$*" ]] && return
    need python3
    rm -rf "$place"
    mkdir -p "$cache"
    python3 -m venv "$place" || skip "python3 cannot make an environment (python3-venv)"
    "$place/bin/pip" install --quiet --disable-pip-version-check "$@" || skip "pip could not install $*"
    echo "$*" > "$place/complete"
}

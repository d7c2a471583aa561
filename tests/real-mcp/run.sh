#!/bin/sh
# Runs real MCP servers from npm and PyPI: each is installed in a sandbox that reaches only the registry, started
# without a network in both tiers, and called once. Prints one line for each run; docs/real-programs.md keeps a dated
# copy.
#
# Needs the system's npm, node and python3, and the network. Makes its directories below $PLACE (default: a new one in
# /var/tmp).
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
drive=${CARGO_TARGET_DIR:-$here/target}/debug/drive-mcp
if [ ! -x "$drive" ]; then
    echo "there is no $drive: \`just real-mcp\` builds it and starts this script" >&2
    exit 2
fi
for program in npm node python3 git; do
    command -v "$program" > /dev/null || { echo "$program is not installed" >&2; exit 2; }
done
place=${PLACE:-$(mktemp -d /var/tmp/real-mcp-XXXXXX)}
mkdir -p "$place/project"
failed=0

echo "one line of text" > "$place/project/note.txt"
printf 'def greeting(name: str) -> str:\n    return f"Hello, {name}"\n' > "$place/project/words.py"
printf 'from words import greeting\n\nprint(greeting("Ada"))\n' > "$place/project/start.py"
if [ ! -d "$place/project/.git" ]; then
    git -C "$place/project" init -q
    git -C "$place/project" add .
    git -C "$place/project" -c user.name=a -c user.email=a@a.example commit -qm "first"
fi

# run NAME TIERS "FLAGS" TOOL ARGUMENTS COMMAND…: installs the server, starts it in each tier and calls a tool, if TOOL
# is not empty. Only the full tier supports lists of hosts.
run() {
    name=$1 tiers=$2 flags=$3 tool=$4 arguments=$5
    shift 5
    echo "## $name"
    # shellcheck disable=SC2086
    if [ -n "$tool" ]; then
        "$drive" "$place/$name" "$tiers" $flags --install --call "$tool" "$arguments" -- "$@" 2>&1 || failed=1
    else
        "$drive" "$place/$name" "$tiers" $flags --install -- "$@" 2>&1 || failed=1
    fi
}

run everything both "" echo '{"message":"hello"}' npx -y @modelcontextprotocol/server-everything
run filesystem both "--read $place/project" read_text_file "{\"path\":\"$place/project/note.txt\"}" \
    npx -y @modelcontextprotocol/server-filesystem "$place/project"
run memory both "" read_graph '{}' npx -y @modelcontextprotocol/server-memory
run sequential-thinking both "" sequentialthinking \
    '{"thought":"one","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}' \
    npx -y @modelcontextprotocol/server-sequential-thinking
run git both "--read $place/project" git_log "{\"repo_path\":\"$place/project\"}" uvx mcp-server-git
run time both "" get_current_time '{"timezone":"Europe/Berlin"}' uvx mcp-server-time
run sqlite both "" list_tables '{}' uvx --with 'mcp<2' mcp-server-sqlite --db-path "$place/sqlite/home/base.db"
run search full "--net duckduckgo.com,*.duckduckgo.com" search '{"query":"landlock"}' uvx duckduckgo-mcp-server
# A bridge to ty's language server. The tool returns the definition of a name that another file uses.
run codenav both "--read $place/project" definition "{\"file_path\":\"$place/project/start.py\",\"line\":3,\"column\":8}" \
    uvx codenav-mcp
# The tools of this server need a browser, which no registry provides.
run playwright both "" "" "" npx -y @playwright/mcp
exit $failed

#!/bin/sh
# Installs what lies beside it. Usage: ./install.sh [PREFIX]
# PREFIX is /usr/local for root, and ~/.local for everybody else. Nothing outside it is changed, and nothing is fetched.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if [ $# -gt 1 ]; then
  echo "usage: $0 [PREFIX]" >&2
  exit 2
fi
if [ "$(id -u)" = 0 ]; then prefix=${1:-/usr/local}; else prefix=${1:-$HOME/.local}; fi

mkdir -p "$prefix/bin" "$prefix/lib"
# Beside the old programs, and then in their place: a session that runs keeps those that it was started with.
rm -rf "$prefix/lib/.bailiwick.new"
cp -R "$here/lib/bailiwick" "$prefix/lib/.bailiwick.new"
rm -rf "$prefix/lib/bailiwick"
mv "$prefix/lib/.bailiwick.new" "$prefix/lib/bailiwick"
ln -sf ../lib/bailiwick/bailiwick "$prefix/bin/bailiwick"
cp -R "$here/share" "$prefix/"

"$prefix/bin/bailiwick" --version
echo "installed: $prefix/bin/bailiwick"
case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *) echo "note: $prefix/bin is not in PATH" ;;
esac
restricted=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
if [ -r $restricted ] && [ "$(cat $restricted)" = 1 ]; then
  echo "note: AppArmor keeps user namespaces from programs that it does not know, so that plain users get the floor tier here. As root:"
  echo "  sed 's|/usr/lib/bailiwick|$prefix/lib/bailiwick|' $prefix/share/doc/bailiwick/apparmor >/etc/apparmor.d/bailiwick"
  echo "  apparmor_parser -r /etc/apparmor.d/bailiwick"
fi
echo "next: bailiwick doctor"

# Provides a container engine: a running one, or one that the tests start. Sourced by run.sh and batch.sh.
cache="${XDG_CACHE_HOME:-$HOME/.cache}/bailiwick-containers"
image=bailiwick-tests:bookworm
bare=bailiwick-tests:bare
# Packages that the actions of the escape suite need, without certificate authorities. debootstrap does not find out
# that the last package provides a dependency of gdb under another name.
packages=git,python3,procps,libgcc-s1,gcc,libc6-dev,make,sqlite3,tmux,strace,gdb,nodejs,libboost-regex1.74.0

skip() {
    echo "skipped: no container engine: $*" >&2
    exit 0
}

work=$(mktemp -d /var/tmp/bailiwick-containers-XXXXXX)
chmod 755 "$work"
engine=
containerd=
# Ends a process of the tests by its id.
end() {
    [[ -n $1 ]] || return 0
    kill "$1" 2>/dev/null || return 0
    for _ in $(seq 100); do kill -0 "$1" 2>/dev/null || return 0; sleep 0.1; done
    kill -KILL "$1" 2>/dev/null || true
}
# Podman has no daemon. Its containers and images are in a directory of the test.
podman_here() {
    command -v podman >/dev/null || skip "no podman on this machine (Debian: apt-get install podman crun)"
    export CONTAINERS_STORAGE_CONF="$work/storage.conf"
    printf '[storage]\ndriver = "%s"\ngraphroot = "%s"\nrunroot = "%s"\n' "${STORAGE:-vfs}" "$work/podman" "$work/podman.run" >"$work/storage.conf"
    # A process without CAP_SYS_RESOURCE cannot set limits as high as Podman's default ones.
    export CONTAINERS_CONF="$work/containers.conf"
    printf '[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n' >"$work/containers.conf"
    if [[ -n ${RUNTIME:-} ]]; then printf '[engine]\nruntime = "%s"\n' "$RUNTIME" >>"$work/containers.conf"; fi
    docker() { podman "$@"; }
    docker version >/dev/null 2>&1 || skip "podman does not work here: $(podman version 2>&1 | tail -n 1)"
}
# The engine's own children end with it. Its mounts are below the directory that is removed.
cleanup() {
    docker rm -f "$(basename "$work")" >/dev/null 2>&1 || true
    if [[ -n $engine ]]; then
        docker rmi -f "$image" "$bare" >/dev/null 2>&1 || true
        # A test may have started the engine again.
        end "$(cat "$work/pid" 2>/dev/null)"
        end "$containerd"
    fi
    # A killed engine leaves its mounts.
    awk -v below="$work/" 'index($2, below) == 1 { print $2 }' /proc/self/mounts | sort -r | xargs -r umount --lazy
    rm -rf "$work"
}
trap cleanup EXIT

# Uses a running daemon. Otherwise starts one, which uses neither the network nor the machine's data. Its containerd is
# a separate process, so that the daemon finds its containers again after it was killed and started again by
# `$work/dockerd`.
start_engine() {
    [[ $(id -u) == 0 ]] || skip "no daemon answers, and only root can start one"
    command -v dockerd >/dev/null || skip "no daemon answers, and there is no dockerd"
    export DOCKER_HOST="unix://$work/engine.sock"
    local beside=
    if command -v containerd >/dev/null; then
        printf 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n' >"$work/containerd.toml"
        containerd --config "$work/containerd.toml" --root "$work/containerd" --state "$work/containerd.run" \
            --address "$work/containerd.sock" >"$work/containerd.log" 2>&1 &
        containerd=$!
        for _ in $(seq 100); do [[ -S $work/containerd.sock ]] && break; sleep 0.1; done
        beside="--containerd $work/containerd.sock"
    fi
    printf '#!/bin/sh\nexec dockerd %s\n' "--data-root $work/data --exec-root $work/exec --pidfile $work/pid --host $DOCKER_HOST \
        $beside --iptables=false --ip6tables=false --bridge=none" >"$work/dockerd"
    chmod +x "$work/dockerd"
    "$work/dockerd" >"$work/engine.log" 2>&1 &
    engine=$!
    for _ in $(seq 100); do
        docker version >/dev/null 2>&1 && return
        kill -0 "$engine" 2>/dev/null || break
        sleep 0.3
    done
    engine=
    end "$containerd"
    skip "dockerd does not start here: $(tail -n 1 "$work/engine.log")"
}

make_images() {
    local root=$cache/bookworm-tools.tar
    if [[ ! -e $root ]]; then
        command -v debootstrap >/dev/null || skip "no debootstrap to make an image with"
        mkdir -p "$cache"
        debootstrap --variant=minbase --include="$packages" bookworm "$work/root" >"$work/debootstrap.log"
        tar -C "$work/root" --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' -cf "$root.new" .
        mv "$root.new" "$root"
        rm -rf "$work/root"
    fi
    docker import "$root" "$image" >/dev/null
    # Only a static shell, and the empty directories on which an engine mounts.
    if command -v busybox >/dev/null && ! ldd "$(command -v busybox)" >/dev/null 2>&1; then
        mkdir -p "$work/bare"/{bin,tmp,var/tmp,project}
        cp "$(command -v busybox)" "$work/bare/bin/busybox"
        ln -s busybox "$work/bare/bin/sh"
        chmod 1777 "$work/bare/tmp" "$work/bare/var/tmp" "$work/bare/project"
        tar -C "$work/bare" -c . | docker import - "$bare" >/dev/null
    fi
}

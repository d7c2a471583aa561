# Makes the files of a guest: an initramfs that mounts a disk, and the disk. Sourced by run.sh.

# Modules for the disk with the root file system, and modules that a real machine would load on demand.
modules='fs net lib crypto arch drivers/virtio drivers/block drivers/net/virtio_net.ko* drivers/net/dummy.ko* drivers/net/tun.ko* drivers/char'

# copy_modules KERNEL ROOT
copy_modules() {
    local from to release part
    from=$(find "$1" -type d -path '*/lib/modules/*' -prune | head -n 1)
    release=$(basename "$from")
    to=$2/lib/modules/$release
    mkdir -p "$to/kernel"
    find "$1" -path "*/$release/modules.*" -exec cp -t "$to" {} +
    for part in $modules; do
        (cd "$from/kernel" && find . -path "./$part*" -name '*.ko*' -exec cp --parents -t "$to/kernel" {} +)
    done
    find "$to" -name '*.ko.xz' -exec xz -d {} +
    depmod -b "$2" "$release"
    echo "$release"
}

# copy_program PROGRAM ROOT: copies a program with its libraries, at the same paths as on this machine.
copy_program() {
    mkdir -p "$2$(dirname "$1")"
    cp -L "$1" "$2$1"
    { ldd "$1" 2>/dev/null || true; } | { grep -o '/[^ ]*' || true; } | while read -r library; do
        mkdir -p "$2$(dirname "$library")"
        cp -L "$library" "$2$library"
    done
}

# make_root ROOT: makes a root file system with busybox, bash, git, and Bailiwick's programs.
make_root() {
    local root=$1 name
    mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,proc,sys,dev,tmp,run,etc,root,home/plain,var/tmp,opt/bailiwick/debug/deps}
    cp "$busybox" "$root/bin/busybox"
    for name in $("$busybox" --list); do ln -s /bin/busybox "$root/bin/$name" 2>/dev/null || true; done
    ln -s /bin/busybox "$root/sbin/modprobe"
    # The tests use options of these programs that busybox lacks.
    for name in bash git setpriv unshare timeout env python3 perl; do
        rm -f "$root/bin/$name"
        copy_program "$(PATH=/usr/bin:/bin:$PATH command -v "$name")" "$root"
    done
    name=$(PATH=/usr/bin:/bin:$PATH python3 -c 'import os; print(os.path.dirname(os.__file__))')
    mkdir -p "$root$name"
    (cd "$name" && find . \( -name test -o -name site-packages -o -name dist-packages -o -name 'config-*' -o -name __pycache__ \) -prune -o -type f -name '*.py' \
        -exec cp --parents -t "$root$name" {} +)
    [[ -e $root/bin/bash ]] || ln -s /usr/bin/bash "$root/bin/bash"
    cp "$static/bailiwick" "$small"/{bailiwick-worker,sandbox-exec} "$root/opt/bailiwick/debug/"
    for name in probe fake-worker; do
        cp "$built/$name" "$root/opt/bailiwick/debug/"
        copy_program "$built/$name" "$root" && rm -rf "${root:?}$(dirname "$built")"
    done
    cp "$escape" "$root/opt/bailiwick/debug/deps/escape"
    strip -g "$root"/opt/bailiwick/debug/{bailiwick,bailiwick-worker,sandbox-exec,probe,fake-worker,deps/escape}
    echo 'root:x:0:0:root:/root:/bin/bash' >"$root/etc/passwd"
    echo 'plain:x:12345:12345:plain:/home/plain:/bin/bash' >>"$root/etc/passwd"
    printf 'root:x:0:\nplain:x:12345:\n' >"$root/etc/group"
    chmod 1777 "$root/tmp" "$root/var/tmp"
    cp "$here/guest.sh" "$root/sbin/guest"
    chmod 755 "$root/sbin/guest"
}

# make_initramfs ROOT RELEASE FILE: makes the initramfs that loads the modules for the disk, in order, and mounts the
# disk.
make_initramfs() {
    local from=$1 place number=100 module
    place=$(mktemp -d "$work/initramfs-XXXXXX")
    mkdir -p "$place"/{bin,proc,dev,new,modules}
    cp "$from/bin/busybox" "$place/bin/"
    cp "$here/initramfs.sh" "$place/init"
    chmod 755 "$place/init"
    for module in virtio_pci virtio_blk crc32c ext4; do
        modprobe --show-depends -d "$from" -S "$2" "$module" 2>/dev/null | sed -n 's/^insmod *\([^ ]*\).*/\1/p'
    done | awk '!seen[$0]++' | while read -r module; do
        cp "$module" "$place/modules/$number.ko"
        number=$((number + 1))
    done
    (cd "$place" && find . -print0 | cpio --quiet --null -o -H newc | gzip -1) >"$3"
    rm -rf "$place"
}

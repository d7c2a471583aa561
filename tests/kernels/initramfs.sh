#!/bin/busybox sh
# The first program of a guest: loads the modules for the disk, mounts the disk, and continues with its init.
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
for module in /modules/*.ko; do
    /bin/busybox insmod "$module" || echo "not loaded: $module"
done
for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ -b /dev/vda ] && break
    /bin/busybox sleep 0.3
done
/bin/busybox mount -t ext4 /dev/vda /new || /bin/busybox poweroff -f
/bin/busybox umount /proc
/bin/busybox mount --move /dev /new/dev
exec /bin/busybox switch_root /new /sbin/guest

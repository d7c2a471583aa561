#!/bin/sh
# In an image that has nothing but a static shell: sandbox-exec holds what it has to hold there.
confined() {
    /opt/bailiwick/sandbox-exec --tier floor --write /project -C /project -- /bin/sh -c "$1"
}

check() {
    if [ "$2" = "$3" ]; then
        echo "passed: $1"
    else
        echo "failed: $1: $2"
        exit 1
    fi
}

check "a command runs and writes its project" "$(confined 'echo x > f && busybox cat f')" x
/bin/busybox echo mine > /tmp/outside
confined 'echo evil > /tmp/outside' 2>/dev/null
check "it writes nothing outside" "$(/bin/busybox cat /tmp/outside)" mine
echo theirs > /tmp/outside && check "which works unconfined" "$(/bin/busybox cat /tmp/outside)" theirs
check "shared memory is its own" "$(confined 'echo x > /dev/shm/x && busybox cat /dev/shm/x && busybox rm /dev/shm/x')" x
check "loopback" "$(confined 'echo -n | busybox nc -l -p 4711 -s 127.0.0.1 > got & for _ in 1 2 3 4 5 6 7 8 9; do
    echo inside | busybox nc 127.0.0.1 4711 2> /dev/null && break; busybox sleep 0.2; done; wait; busybox cat got')" inside
check "the worker is static" "$(/opt/bailiwick/bailiwick-worker < /dev/null > /dev/null 2>&1; [ $? -lt 126 ] && echo starts)" starts

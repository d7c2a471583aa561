#!/bin/sh
# Checks in an image that has only a static shell: Bailiwick's programs work there, and the sandbox denies what it must.
export BAILIWICK_HOME=/tmp/own ANTHROPIC_API_KEY=sk-container

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
check "loopback" "$(confined 'echo -n | busybox nc -l -p 4711 > got & for _ in 1 2 3 4 5 6 7 8 9; do
    echo inside | busybox nc 127.0.0.1 4711 2> /dev/null && break; busybox sleep 0.2; done; wait; busybox cat got')" inside
check "the worker is static" "$(/opt/bailiwick/bailiwick-worker < /dev/null > /dev/null 2>&1; [ $? -lt 126 ] && echo starts)" starts

/opt/bailiwick/bailiwick doctor > /tmp/doctor
check "doctor" "$?" 0
check "its tier" "$(/bin/busybox grep -c '^warn  tier  *floor: ' /tmp/doctor)" 1
check "its own attack" "$(/bin/busybox grep -c '^ok    self-test  *a process in the sandbox could not: ' /tmp/doctor)" 1
check "it misses a shell" "$(/bin/busybox grep -c '^warn  shell  *no bash' /tmp/doctor)" 1
check "a sandboxed command" "$(/opt/bailiwick/bailiwick sandbox -C /project -- /bin/sh -c 'busybox cat f')" x

echo 'echo $(($1 - $2))' > /project/sum.sh
(for turn in 0 1; do /bin/busybox nc -l -p 4712 -e /bin/sh /opt/bailiwick/reply.sh $turn; done) &
/opt/bailiwick/bailiwick exec --mode auto --base-url http://127.0.0.1:4712 -C /project "mend it" > /dev/null 2> /tmp/said
check "a task" "$?$(/bin/busybox cat /tmp/said | /bin/busybox grep -i denied)" 0
check "a repair" "$(/bin/sh /project/sum.sh 1 2)" 3

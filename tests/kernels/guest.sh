#!/bin/bash
# The checks of one kernel, run in the guest. Each prints its result between two lines that run.sh searches for.
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin LC_ALL=C HOME=/root TERM=dumb
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs -o nosuid,nodev run /run
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=0,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o nosuid,nodev shm /dev/shm
mount -t cgroup2 cgroup /sys/fs/cgroup
chmod 1777 /dev/shm
ip link set lo up
hostname guest
chown 12345:12345 /home/plain
exec >/dev/ttyS0 2>&1 </dev/null

here=/opt/bailiwick/debug
only=$(grep -o 'checks=[^ ]*' /proc/cmdline)
only=${only#checks=}
# check NAME COMMAND...: with a time limit, since a guest that hangs shows nothing.
check() {
    local name=$1 status
    shift
    [[ $name == "$only"* ]] || return 0
    echo "== begin $name"
    timeout -s KILL "${PATIENCE:-1500}" "$@"
    status=$?
    echo "== end $name $status"
}
plain=(setpriv --reuid 12345 --regid 12345 --clear-groups env HOME=/home/plain)

echo "== kernel $(uname -r) $(cat /sys/kernel/security/lsm 2>/dev/null)"
cat /proc/sys/kernel/unprivileged_userns_clone 2>/dev/null
cd /root || exit
check doctor-root $here/bailiwick doctor
cd /home/plain || exit
check doctor-plain "${plain[@]}" $here/bailiwick doctor
for tier in full floor; do
    cd /root && check "promises-$tier-root" $here/bailiwick doctor --promises --json --tier $tier
    cd /home/plain && check "promises-$tier-plain" "${plain[@]}" $here/bailiwick doctor --promises --json --tier $tier
    cd /root && check "demo-$tier-root" $here/bailiwick demo --attack --tier $tier
    cd /home/plain && check "demo-$tier-plain" "${plain[@]}" $here/bailiwick demo --attack --tier $tier
done
# If no sandbox starts on this kernel, there is nothing to attack.
tests='every_attack_is_denied_in_the_sandbox every_attack_succeeds_unconfined what_a_tier_leaves_open_is_exactly_this
    ports:: addresses:: beside:: leases::'
$here/bailiwick doctor >/dev/null || tests=
# As root, these tests repeat themselves as a plain user, in each supported tier.
cd /root || exit
for name in $tests; do
    check "escape-$name" $here/deps/escape --nocapture --test-threads 1 "$name"
done
echo "== over"
sync
poweroff -f

#!/bin/sh
# Takes one request of HTTP from standard input, and answers with what was prepared for this turn.
while read -r name value; do
    case "$name" in
        [Cc]ontent-[Ll]ength:) length=${value%?} ;;
        ?) break ;;
    esac
done
/bin/busybox head -c "$length" > "/tmp/request-$1"
/bin/busybox cat "/opt/bailiwick/reply-$1"

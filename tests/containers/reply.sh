#!/bin/sh
# Reads one HTTP request from standard input, and writes the reply that was prepared for this turn.
while read -r name value; do
    case "$name" in
        [Cc]ontent-[Ll]ength:) length=${value%?} ;;
        ?) break ;;
    esac
done
/bin/busybox head -c "$length" > "/tmp/request-$1"
/bin/busybox cat "/opt/bailiwick/reply-$1"

#!/bin/sh
# One night for a scheduler: pull, reconcile, report; tried again if the platform failed or another run held the lock,
# which may be a push, or a pull of new orders alone. Prints nothing if all went well, otherwise what happened, the
# command that is next, and what orderbridge said, on stderr: cron mails it. Needs the settings in the environment and orderbridge on the
# PATH. Writes nightly.jsonl, an object a line, and report.html into the current folder.
#
# Exit code: that of orderbridge; 5, rows in quarantine, counts as done (0). After 7 and 9 a new warehouse is published too.
set -u
umask 077
tries=${ORDERBRIDGE_TRIES:-3}
wait_s=${ORDERBRIDGE_WAIT_S:-900}

next_command() { # what the last try said that a person does next; nothing where it said none
    tail -n "+$begin" nightly.jsonl |
        sed -n 's/.*"event": "next", "message": "\(orderbridge [^"\]*\)".*/next: \1/p' | tail -n 1
}

message() { # what the last try said at its end: its error, or its summary
    json='"message": "\([^"\\]*\(\\.[^"\\]*\)*\)"'
    said=$(tail -n "+$begin" nightly.jsonl |
        sed -n -e 's/.*"event": "error", '"$json"'.*/\1/p' -e 's/.*"event": "ended", '"$json"'.*/\1/p' | tail -n 1)
    if [ -z "$said" ]; then
        said="see the end of nightly.jsonl"
        [ -n "$(tail -n "+$begin" nightly.jsonl)" ] || said="nothing was written to nightly.jsonl: is the disk full?"
        said="$said ($(df -Pk . | awk 'NR == 2 { print int($4 / 1024) }') MB are free in $PWD)"
    fi
    printf '%b\n' "$(printf '%s\n' "$said" | sed 's/\\"/"/g')"
}

start() { # a command, which a signal to this script stops as well; the shell's own words about it are not logged
    [ -z "$stopped" ] || return 143
    "$@" >>nightly.jsonl 2>&1 &
    child=$!
    wait "$child" 2>/dev/null
    set -- $?
    while kill -0 "$child" 2>/dev/null; do # a signal ended the wait, not the command
        wait "$child" 2>/dev/null
        set -- $?
    done
    child=
    return "$1"
}
trap 'stopped=1; [ -z "$child" ] || kill "$child" 2>/dev/null' TERM INT HUP
stopped='' child=''

while :; do
    : >>nightly.jsonl
    begin=$(($(wc -l <nightly.jsonl) + 1))
    start orderbridge run --log json
    code=$?
    tries=$((tries - 1))
    copy_failed=0
    if [ "$code" -eq 4 ]; then
        # Only the copy to the destination failed if the run recorded no failure and the copy did.
        case $(orderbridge status --json 2>>nightly.jsonl) in
            *'"failure": null'*'"destination_failure": {'*) copy_failed=1 ;;
        esac
    fi
    case $code in 4 | 8) ;; *) break ;; esac
    if [ "$copy_failed" -eq 1 ] || [ "$tries" -lt 1 ]; then
        break
    fi
    start sleep "$wait_s"
done

case $code in
    0) ;;
    1) echo "orderbridge: a bug; please report these lines" >&2 ;;
    2) echo "orderbridge: a setting or a file cannot be used, or the disk is full" >&2 ;;
    3) echo "orderbridge: the platform does not accept a key, or a key lacks a permission" >&2 ;;
    4)
        if [ "$copy_failed" -eq 1 ]; then
            echo "orderbridge: published; the copy to the destination failed; run: orderbridge status" >&2
        else
            echo "orderbridge: the platform did not answer as it should in any try; what it did not send stays as it was" >&2
        fi
        ;;
    5) echo "orderbridge: published, without rows that are in quarantine; their reasons are in ops.quarantine" >&2 ;;
    7) echo "orderbridge: published, but for a list that was held back; run: orderbridge status" >&2 ;;
    8) echo "orderbridge: another run held the lock in every try: nothing was read" >&2 ;;
    9) echo "orderbridge: published, with findings that nobody has accepted; see report.html" >&2 ;;
    137) echo "orderbridge: killed (memory?); the next run goes on" >&2 ;;
    12[89] | 1[3-9]?) echo "orderbridge: stopped by a signal ($code); the next run goes on" >&2 ;;
    *) echo "orderbridge: exit code $code" >&2 ;;
esac
if [ "$code" -ne 0 ]; then
    next_command >&2
    message >&2
fi
undelivered=$(tail -n "+$begin" nightly.jsonl | sed -n 's/.*"\(the notification was not delivered[^"]*\)".*/\1/p')
[ -z "$undelivered" ] || echo "orderbridge: $undelivered" >&2

case $code in # after 3 and 4 too: the lists of the other family are published
    0 | 3 | 4 | 5 | 7 | 9)
        if ! start orderbridge report --out report.html --log json; then
            [ -z "$stopped" ] || code=143
            echo "orderbridge: the report was not written${stopped:+, stopped by a signal}; see the end of nightly.jsonl" >&2
        fi
        ;;
esac
case $code in
    0 | 5) exit 0 ;;
    *) exit "$code" ;;
esac

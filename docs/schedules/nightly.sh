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

is_silent() { # whether the last try could not write a word, as on a full disk
    [ -z "$(tail -n "+$begin" nightly.jsonl)" ]
}

next_command() { # what the last try said that a person does next; nothing where it said none
    if [ "$code" -eq 2 ] && is_silent; then
        echo "next: Free space in $PWD, then run it again: orderbridge run"
        return
    fi
    tail -n "+$begin" nightly.jsonl |
        sed -n 's/.*"event": "next", "message": "\([^"\]*\)".*/next: \1/p' | tail -n 1
}

headline() { # what happened, in one line; nothing where the last try did not say it
    if [ "$code" -eq 2 ] && is_silent; then
        echo "nothing was written to nightly.jsonl: is the disk full? ($free_mb MB are free in $PWD)"
        return
    fi
    json='"message": "\([^"\\]*\(\\.[^"\\]*\)*\)"'
    said=$(tail -n "+$begin" nightly.jsonl | sed -n 's/.*"event": "headline", '"$json"'.*/\1/p' | tail -n 1)
    printf '%b' "$(printf '%s' "$said" | sed 's/\\"/"/g')"
}

message() { # what the last try said at its end: its error, or its summary
    json='"message": "\([^"\\]*\(\\.[^"\\]*\)*\)"'
    said=$(tail -n "+$begin" nightly.jsonl |
        sed -n -e 's/.*"event": "error", '"$json"'.*/\1/p' -e 's/.*"event": "ended", '"$json"'.*/\1/p' | tail -n 1)
    if [ -z "$said" ]; then
        said="see the end of nightly.jsonl"
        ! is_silent || said="nothing was written to nightly.jsonl: is the disk full?"
        said="$said ($free_mb MB are free in $PWD)"
    fi
    printf '%b\n' "$(printf '%s\n' "$said" | sed 's/\\"/"/g')"
}

start() { # a command, which a signal to this script stops as well; the shell's own words about it are not logged
    [ -z "$stopped" ] || return 143
    "$@" >>nightly.jsonl 2>&1 &
    child=$!
    [ -z "$stopped" ] || kill "$child" 2>/dev/null # a signal that came before it was known
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

free_mb=$(df -Pk . | awk 'NR == 2 { print int($4 / 1024) }') # read once: both lines that name it are compared
first='' # line of the mail: what happened
case $code in
    0 | 5 | 137 | 12[89] | 1[3-9]?) ;;
    *) [ "$copy_failed" -eq 1 ] || first=$(headline) ;;
esac
[ -n "$first" ] || case $code in
    0) ;;
    1) first="a bug; please report these lines" ;;
    2) first="a setting or a file cannot be used, or the disk is full" ;;
    3) first="the platform does not accept a key, or a key lacks a permission" ;;
    4)
        first="the platform failed on every attempt; lists that it did not return keep last night's data"
        [ "$copy_failed" -eq 0 ] || first="published; the copy to the destination failed"
        ;;
    5) first="published, without rows that are in quarantine; their reasons are in ops.quarantine" ;;
    7) first="published, but for a list that lost too many rows; run: orderbridge status" ;;
    8) first="another run held the lock in every try: nothing was read" ;;
    9) first="published, with findings that nobody has accepted; see report.html" ;;
    137) first="killed (memory?); the next run goes on" ;;
    12[89] | 1[3-9]?) first="stopped by a signal ($code); the next run goes on" ;;
    *) first="exit code $code" ;;
esac
if [ "$code" -ne 0 ]; then
    echo "orderbridge: $first" >&2
    next_command >&2
    if [ "$(message | head -n 1)" = "$first" ]; then message | tail -n +2; else message; fi >&2
fi
undelivered=$(tail -n "+$begin" nightly.jsonl | sed -n 's/.*"\(the notification was not delivered[^"]*\)".*/\1/p')
[ -z "$undelivered" ] || echo "orderbridge: $undelivered" >&2

case $code in # after 3 and 4 too: the lists of the other API are published
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

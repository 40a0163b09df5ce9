#!/bin/sh
# Files of the ERP for a scheduler: sh import.sh KIND FILE, or a drop folder in place of FILE, whose files are imported in
# the order of their names and then moved to its folder `done`. A file that was not done stays and is continued by the
# next run. Prints on stderr what a person should know: cron mails it. Needs the settings in the environment and
# orderbridge on the PATH; ORDERBRIDGE_IMPORT has the options, such as "--confirm 200 --passwords mail". Writes
# imports.jsonl into the current folder.
#
# Exit code: the highest of those of orderbridge; 5, lines to correct, counts as done, unless lines were blocked or are
# not on the platform as they were sent.
set -u
umask 077
kind=${1:-} from=${2:-} worst=0
if [ -z "$kind" ] || [ -z "$from" ]; then
    echo "import.sh: no file to import; usage: sh import.sh KIND FILE-OR-FOLDER" >&2
    exit 2
fi

message_of() { # the message of the last event with this name in this run
    json='"message": "\([^"\\]*\(\\.[^"\\]*\)*\)"'
    said=$(tail -n "+$begin" imports.jsonl | sed -n 's/.*"event": "'"$1"'", '"$json"'.*/\1/p' | tail -n 1)
    [ -n "$(tail -n "+$begin" imports.jsonl)" ] ||
        said="nothing was written to imports.jsonl: is the disk full? ($(df -Pk . | awk 'NR == 2 { print int($4 / 1024) }') MB are free in $PWD)"
    printf '%b\n' "$(printf '%s\n' "${said:-see the end of imports.jsonl}" | sed 's/\\"/"/g')"
}

trap 'stopped=1; [ -z "$child" ] || kill "$child" 2>/dev/null' TERM INT HUP # a signal stops the import as well
stopped='' child=''

import_file() {
    : >>imports.jsonl
    begin=$(($(wc -l <imports.jsonl) + 1))
    # shellcheck disable=SC2086 # several options
    "${ORDERBRIDGE:-orderbridge}" import "$kind" "$1" --json ${ORDERBRIDGE_IMPORT:-} >>imports.jsonl 2>&1 &
    child=$!
    [ -z "$stopped" ] || kill "$child" 2>/dev/null # a signal that came before it was known
    wait "$child" 2>/dev/null # the shell's own words are not logged
    code=$?
    while kill -0 "$child" 2>/dev/null; do # a signal ended the wait, not the import
        wait "$child" 2>/dev/null
        code=$?
    done
    child=
    last=$(tail -n 1 imports.jsonl) is_done=$code state="done; some lines need a correction"
    if [ "$code" -eq 5 ]; then
        case $last in
            *'"unsent.blocked": '[1-9]* | *'"differs": '[1-9]* | *'"missing": '[1-9]* | *'"several": '[1-9]*)
                state="some lines are blocked, or are not on the platform as they were sent"
                ;;
            *) is_done=0 ;;
        esac
    fi
    case $code in
        0) ;;
        5)
            echo "$1: $state:" >&2 # then counts and the path of result.xlsx
            message_of import >&2
            ;;
        6)
            echo "$1: the outcome of some requests is unknown:" >&2
            message_of import >&2
            ;;
        4 | 8) echo "$1: the platform did not answer, or another run held the lock; the next run goes on" >&2 ;;
        137) echo "$1: killed (memory?); the next run goes on" >&2 ;;
        12[89] | 1[3-9]?) echo "$1: stopped by a signal ($code); the next run goes on" >&2 ;;
        *) echo "$1: exit code $code: $(message_of error)" >&2 ;;
    esac
    [ "$is_done" -le "$worst" ] || worst=$is_done
}

if [ -d "$from" ]; then
    for file in "$from"/*.csv "$from"/*.xlsx; do
        [ -f "$file" ] && [ -z "$stopped" ] || continue
        import_file "$file"
        case $is_done in
            0) mkdir -p "$from/done" && mv "$file" "$from/done/$(date +%Y-%m-%dT%H%M%S)-${file##*/}" || worst=2 ;;
        esac
    done
else
    import_file "$from"
fi
exit "$worst"

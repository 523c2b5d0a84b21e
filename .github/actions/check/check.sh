#!/usr/bin/env bash
# What the action runs: one line for each database; the exit code of the worst, 0 up to CHECK_ALLOW.
set -uo pipefail
"${CHECK_ROOTPAGE:-rootpage}" check --quiet --recursive -- "${CHECK_PATH:-.}"
code=$?
[ "$code" -le "${CHECK_ALLOW:-0}" ] && exit 0
exit "$code"

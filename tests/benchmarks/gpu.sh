#!/usr/bin/env bash
# Everything that needs a GPU to be known, in one go of at most 8 minutes (H200 class, 16 cores):
#
#     PYTHON=python OUT=results/benchmarks tests/benchmarks/gpu.sh [--dry-run]
#
# Every step prints its numbers and PASS or FAIL, and the others go on after a failure; the exit status is 1 if one
# failed, 2 if the imports do. Numbers are written to $OUT/gpu.json, or gpu-dry-run.json. --dry-run runs the same steps
# at tiny sizes on the CPU, in four minutes on two cores, and says which parts it leaves out. Nothing is downloaded.
set -u
cd "$(dirname "$0")/../.." || exit 2
PYTHON=${PYTHON:-python}
OUT=${OUT:-results/benchmarks}
work=$(mktemp -d) # 8 GB, under TMPDIR
trap 'rm -rf "$work"' EXIT
limit=${LIMIT:-470}
checks=(env PYTHONWARNINGS=ignore "$PYTHON" tests/benchmarks/gpu_checks.py "$@" --out "$OUT" --work "$work")

"${checks[@]}" imports || exit 2
# Each step with the most seconds it may take; together they take far less, and never more than $limit.
for step in photos:60 bank:80 resnet50:120 resnet50-bf16:120 wrn:90 workers:60 noise:40 memory:60 corruptions:80 \
            agreement:80 separation:120; do
    left=$((limit - SECONDS))
    most=${step#*:}
    [ "$most" -lt "$left" ] || most=$left
    if [ "$most" -lt 5 ]; then
        "${checks[@]}" failed "${step%:*}" "no time was left"
    else
        timeout --kill-after=5 "$most" "${checks[@]}" "${step%:*}"
        status=$?
        [ "$status" -le 1 ] || "${checks[@]}" failed "${step%:*}" "it ended with status $status after ${SECONDS} s in all"
    fi
done
"${checks[@]}" summary

#!/usr/bin/env bash
# Draws every figure of the papers that the stored results allow, and says what is missing for the others.
# Options are those of paper_plots.py; PYTHON names another interpreter.
exec "${PYTHON:-python}" "$(dirname "${BASH_SOURCE[0]}")/paper_plots.py" "$@"

#!/bin/sh
# A file that the test program writes is read by Python. Usage: python.sh PROGRAM READER FILE
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
rm -f "$3"
"$1" --log_level=error --run_test=files/a_file_for_another_reader -- "$3"
python3 "$2" "$3"

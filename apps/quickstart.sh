#!/usr/bin/env bash
# From a fresh clone to a trained model: installs the missing packages, builds, trains a small character-level GPT on the text of this
# project (2 to 7 minutes on two cores), and prints its validation loss and a sample.
#   apps/quickstart.sh [key=value ...]      overrides for the run, such as steps=200
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
cd "$(dirname "$0")/.."
apps/install_packages.sh
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release >build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
grep -A 12 'ricci [0-9]' build-configure.log || true
rm -f build-configure.log
cmake --build build
build/ricci train apps/configs/quickstart.yaml "$@"
build/ricci eval runs/quickstart
echo
build/ricci generate runs/quickstart --prompt "// " --tokens 400 --temperature 0.8 --seed 2
cat <<'TEXT'

What to try next:
  build/ricci generate runs/quickstart --prompt "Tensor " --top-k 20      another sample
  build/ricci train apps/configs/quickstart.yaml name=mine data=my.txt    your own text
  build/ricci train --help                                                every option; --help-config every key
  build/ricci check                                                       the gradient of every op, on every device
  tests/run.sh                                                            the tests
TEXT

#!/usr/bin/env bash
# Builds and runs the tests. The last line is "N passed, N failed, N skipped".
#   tests/run.sh           everything: the tests, and again under AddressSanitizer + UndefinedBehaviorSanitizer and
#                          under ThreadSanitizer
#   tests/run.sh --quick   the tests alone
# Tests on real corpora need RICCI_DATA, a folder with them, and are skipped without it.
set -uo pipefail
cd "$(dirname "$0")/.."
apps/install_packages.sh doctest-dev zstd || exit 1
presets=(test)
[ "${1:-}" = --quick ] || presets+=(address thread)
jobs=$(nproc)
# Several tests share the processors: threads that wait must not spin.
export OMP_WAIT_POLICY=passive
passed=0 failed=0 skipped=0

# Counts of one junit report, added to the totals.
count() {
  local suite=$1 attributes
  attributes=$(grep -oE '(tests|failures|disabled|skipped)="[0-9]+"' "$suite" | head -4)
  value() { echo "$attributes" | grep "^$1=" | grep -oE '[0-9]+' || echo 0; }
  local total fail skip
  total=$(value tests) fail=$(value failures) skip=$(($(value disabled) + $(value skipped)))
  passed=$((passed + total - fail - skip)) failed=$((failed + fail)) skipped=$((skipped + skip))
}

for preset in "${presets[@]}"; do
  echo "== $preset"
  cmake --preset "$preset" -G Ninja >"/tmp/ricci-$$-configure" 2>&1 || { cat "/tmp/ricci-$$-configure"; failed=$((failed + 1)); continue; }
  rm -f "/tmp/ricci-$$-configure"
  if ! cmake --build "build-$preset" -j "$jobs"; then
    failed=$((failed + 1))
    continue
  fi
  report=$PWD/build-$preset/tests.xml
  rm -f "$report"
  ctest --test-dir "build-$preset" --output-on-failure --output-junit "$report" -j "$jobs"
  [ -e "$report" ] && count "$report" || failed=$((failed + 1))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

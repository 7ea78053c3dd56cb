#!/usr/bin/env bash
# Builds and runs the tests. The last line is "N passed, N failed, N skipped".
#   tests/run.sh           everything: the tests, again under AddressSanitizer + UndefinedBehaviorSanitizer, those of rooms that
#                          use several threads under ThreadSanitizer, a search of ten seconds by each fuzz target, and five of the mistakes
#                          that tests/mutants/mutants.py plants in kernels, each of which the tests must notice
#   tests/run.sh --quick   the tests alone, without the mistakes that tests/cuda/stub/mutants.sh plants
#   tests/run.sh --clang   the same, built by clang 16
# Skipped, each named with what it needs before the last line: tests on real corpora without RICCI_DATA, a folder with them;
# the reading of TensorBoard files without the tensorboard package, which Debian has not ($RICCI_PYTHON or python3 with
# "pip install tensorboard"); GPUs, oneDNN, AVX-512, AMX, the right to mount a disk, to make a PID namespace or to change the root folder;
# clang with libFuzzer and clang 16, which this does not install; machine code of kernels, and the programs that read it
# (tests/bench/machine_code/sass.py); the last parts, on a machine that has taken over an hour for the others. What else Debian has is
# installed.
set -uo pipefail
case ${1:-} in
  '' | --quick | --clang) ;;
  -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
  *) echo "tests/run.sh: expected --quick, --clang or nothing, got '$1'" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."
apps/install_packages.sh doctest-dev zstd libxml2-utils clang-format python3 libopenmpi-dev openmpi-bin procps libbz2-dev liblzma-dev \
  liblz4-dev libzstd-dev librsvg2-dev || exit 1
presets=(test)
if [ "${1:-}" = --clang ]; then
  apps/install_packages.sh clang-16 || exit 1
  presets=(clang)
fi
has_libfuzzer() {
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    clang++ -fsanitize=fuzzer,address -x c++ - -o "/tmp/ricci-$$-fuzzer" 2>/dev/null && rm -f "/tmp/ricci-$$-fuzzer"
}
without=() left_out=()
[ -z "${1:-}" ] || left_out=(-LE mutants)
if [ -z "${1:-}" ]; then
  presets+=(address thread)
  if has_libfuzzer; then presets+=(fuzz); else without+=('skipped: fuzz/search needs clang with libFuzzer'); fi
fi
jobs=$(nproc)
# Several tests share the processors: threads that wait must not spin.
export OMP_WAIT_POLICY=passive
passed=0 failed=0 skipped=${#without[@]}
reports=()

# count REPORT CODE: the counts of one junit report and of the ctest that wrote it, added to the totals. A test that could not
# be started at all is none that was skipped: ctest ends with another code than 0 then.
count() {
  local attributes total fail skip
  attributes=$(grep -oE '(tests|failures|disabled|skipped)="[0-9]+"' "$1" | head -4)
  value() { echo "$attributes" | grep "^$1=" | grep -oE '[0-9]+' || echo 0; }
  total=$(value tests) fail=$(value failures) skip=$(($(value disabled) + $(value skipped)))
  passed=$((passed + total - fail - skip)) skipped=$((skipped + skip))
  [ "$2" -eq 0 ] || [ "$fail" -gt 0 ] || fail=1
  failed=$((failed + fail))
}

# late MINUTES PART: true if MINUTES have passed. The part is then skipped, so that slow machines end within an hour and a half, too.
late() {
  [ $((SECONDS / 60)) -ge "$1" ] || return
  without+=("skipped: $2 needs a machine that begins with it within $1 minutes")
  skipped=$((skipped + 1))
}

for preset in "${presets[@]}"; do
  case $preset in
    thread) ! late 65 thread || continue ;;
    fuzz) ! late 75 fuzz/search || continue ;;
  esac
  echo "== $preset"
  cmake --preset "$preset" -G Ninja >"/tmp/ricci-$$-configure" 2>&1 || { cat "/tmp/ricci-$$-configure"; failed=$((failed + 1)); continue; }
  rm -f "/tmp/ricci-$$-configure"
  if ! cmake --build "build-$preset" -j "$jobs"; then
    failed=$((failed + 1))
    continue
  fi
  report=$PWD/build-$preset/tests.xml
  rm -f "$report"
  ctest --test-dir "build-$preset" --output-on-failure --test-output-size-passed 1000000 --output-junit "$report" -j "$jobs" "${left_out[@]}"
  code=$?
  if [ -e "$report" ]; then count "$report" $code && reports+=("$report"); else failed=$((failed + 1)); fi
done
if [ -z "${1:-}" ] && [ -x build-test/ricci-tests ] && ! late 80 mutants; then
  echo '== mutants'
  if tests/mutants/mutants.py build-test --only 1 11 21 31 41; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
fi
[ ${#without[@]} -eq 0 ] || printf '%s\n' "${without[@]}"
[ ${#reports[@]} -eq 0 ] || grep -ohE 'skipped( on [a-z_]+)?: .*' "${reports[@]}" | sort | uniq -c
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

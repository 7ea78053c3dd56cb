#!/usr/bin/env bash
# Builds the tests and runs them. The last line is "N passed, N failed, N skipped".
#   tests/run.sh          once
#   tests/run.sh --all    also with every shape, kill and fault that is too slow for daily use; under AddressSanitizer and
#                         UndefinedBehaviorSanitizer; folders that use threads under ThreadSanitizer; built by clang; a search of ten
#                         seconds by each fuzz target; with each mistake of tests/mutants: the tests must notice it; and, on x86-64, built
#                         for 64-bit ARM and emulated by qemu
# It installs packages of Debian. Each skipped test is listed before the last line, with its requirement: tests on real corpora need a
# folder with them (RICCI_DATA); reading TensorBoard files needs the Python package tensorboard, not in Debian (RICCI_PYTHON, or python3
# with "pip install tensorboard"); others need a GPU, AVX-512, programs that read machine code (tests/bench/machine_code/sass.py), or the
# right to mount a disk, to make a PID namespace or to change the root folder.
set -uo pipefail
all=
case ${1:-} in
  '') ;;
  --all) all=1 ;;
  -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
  --quick) echo 'tests/run.sh: --quick is gone: run it without an option' >&2; exit 2 ;;
  --clang) echo 'tests/run.sh: --clang is gone: --all includes the build by clang' >&2; exit 2 ;;
  *) echo "tests/run.sh: expected --all or nothing, got '$1'" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."
packages=(doctest-dev zstd libxml2-utils clang-format python3 libopenmpi-dev openmpi-bin procps libbz2-dev liblzma-dev liblz4-dev libzstd-dev patchelf)
presets=(test)
if [ -n "$all" ]; then
  packages+=(clang-16 libclang-rt-16-dev)
  presets+=(address thread fuzz clang)
fi
apps/install_packages.sh "${packages[@]}" || exit 1
if [ -n "$all" ] && [ "$(uname -m)" = x86_64 ]; then
  apps/install_packages.sh --arm64 doctest-dev libbz2-dev liblzma-dev liblz4-dev libzstd-dev || exit 1
  presets+=(arm64)
fi
jobs=$(nproc)
TIMEFORMAT='== %0R s, with %0U + %0S s of processor time'
passed=0 failed=0 skipped=0
reports=()

# count REPORT CODE: adds the counts of a junit report to the totals. CODE is ctest's exit code, not 0 if a test could not start.
count() {
  local attributes total fail skip
  attributes=$(grep -oE '(tests|failures|disabled|skipped)="[0-9]+"' "$1" | head -4)
  value() { echo "$attributes" | grep "^$1=" | grep -oE '[0-9]+' || echo 0; }
  total=$(value tests) fail=$(value failures) skip=$(($(value disabled) + $(value skipped)))
  passed=$((passed + total - fail - skip)) skipped=$((skipped + skip))
  [ "$2" -eq 0 ] || [ "$fail" -gt 0 ] || fail=1
  failed=$((failed + fail))
}

for preset in "${presets[@]}"; do
  echo "== $preset: build"
  cmake --preset "$preset" -G Ninja >"/tmp/ricci-$$-configure" 2>&1 || { cat "/tmp/ricci-$$-configure"; failed=$((failed + 1)); continue; }
  rm -f "/tmp/ricci-$$-configure"
  # Slow tests run only in the first build: their results depend neither on the compiler nor on a sanitizer.
  targets=(all) left_out=(-LE '^all$')
  unset RICCI_TEST_ALL
  if [ -n "$all" ] && [ "$preset" = test ]; then
    targets+=(ricci-slow) left_out=()
    export RICCI_TEST_ALL=1
  fi
  if [ "$preset" = arm64 ]; then
    # Tests that do not run the programs, need this machine's compiler, make system calls fail, or take many minutes under qemu.
    left_out+=(-E '^(house|mutants|gpu|library|apps/hostile)/|^apps/(readme|tour|bench)$')
    export QEMU_LD_PREFIX=$PWD/build-arm64/root
  fi
  time cmake --build "build-$preset" -j "$jobs" --target "${targets[@]}" || { failed=$((failed + 1)); continue; }
  report=$PWD/build-$preset/tests.xml
  rm -f "$report"
  echo "== $preset: tests"
  if [ "$preset" = arm64 ] && ! "build-$preset/ricci" --version >/dev/null; then
    echo "skipped: needs qemu for programs of arm64 (binfmt_misc)"
    skipped=$((skipped + 1))
    continue
  fi
  time ctest --test-dir "build-$preset" --output-on-failure --test-output-size-passed 1000000 --output-junit "$report" -j "$jobs" "${left_out[@]}"
  code=$?
  if [ -e "$report" ]; then count "$report" $code && reports+=("$report"); else failed=$((failed + 1)); fi
done
[ ${#reports[@]} -eq 0 ] || grep -ohE 'skipped( on [a-z_]+)?: .*' "${reports[@]}" | sort | uniq -c
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

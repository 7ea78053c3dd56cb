#!/usr/bin/env bash
# A test that may be skipped is a ctest entry of its own, so that it is counted: the suites "needs X" of the tests and the
# list in tests/CMakeLists.txt name the same, and no test says by itself that it is skipped, but for devices, which
# needs/GPU counts.
set -u
cd "$(dirname "$0")/../.."
suites=$(grep -rhoE 'test_suite\("needs [^"]+"\)\)' tests --include='*_test.cpp' | sed -E 's/.*needs ([^"]+).*/\1/' | sort -u)
listed=$(sed -nE 's/^set\(RICCI_NEEDS (.*)\)/\1/p' tests/CMakeLists.txt | tr ' ' '\n' | sort)
difference=$(diff <(echo "$suites") <(echo "$listed"))
[ -n "$suites" ] || { echo "no suite was found"; exit 1; }
[ -z "$difference" ] || { echo "suites (<) and tests/CMakeLists.txt (>) differ:"; echo "$difference"; exit 1; }
silent=$(grep -rnE 'MESSAGE\("skipped' tests --include='*.cpp' --include='*.h' | grep -vE '"skipped on (cuda: )?"|^tests/skip\.h:')
[ -z "$silent" ] || { echo "tests that skip without test::skip():"; echo "$silent"; exit 1; }

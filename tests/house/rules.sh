#!/usr/bin/env bash
# Rules that a search through the files can check, one paragraph each.
#   rules.sh build-folder
set -u
export LC_ALL=C
build=$1
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0
fault() { printf '%s\n' "$@"; failures=$((failures + 1)); }

# A test that may be skipped is a separate ctest entry, so it is counted: the suites "needs X" of the tests and the list in
# tests/CMakeLists.txt name the same. No test says by itself that it is skipped, except for devices, which needs/GPU counts.
suites=$(grep -rhoE 'test_suite\("needs [^"]+"\)\)' tests --include='*_test.cpp' | sed -E 's/.*needs ([^"]+).*/\1/' | sort -u)
listed=$(sed -nE 's/^set\(RICCI_NEEDS (.*)\)/\1/p' tests/CMakeLists.txt | tr ' ' '\n' | sort)
[ -n "$suites" ] && difference=$(diff <(echo "$suites") <(echo "$listed")) || fault 'suites of skipped tests (<) and tests/CMakeLists.txt (>) differ:' "${difference:-none found}"
silent=$(grep -rnE 'MESSAGE\("skipped' tests --include='*.cpp' --include='*.h' | grep -vE '"skipped on (cuda: )?"|^tests/skip\.h:')
[ -z "$silent" ] || fault 'tests that skip without test::skip():' "$silent"

# Every file with kernels for the GPU says what they cost: the bytes that they move.
kernels=$(grep -lE '^CUDA_[A-Z]+\(' -r cuda ops --include='*.cu')
[ "$(wc -w <<<"$kernels")" -gt 10 ] || fault 'too few files with kernels were found'
silent=$(grep -LE '^ *//.*\b[Bb]ytes\b' $kernels)
[ -z "$silent" ] || fault 'no comment on bytes:' "$silent"

# Every name that is recorded on a tape somewhere has a gradient check, and every check names an op that exists. A helper that records for
# multiple ops is called record_...("name", ...).
calls=$(find ops autograd -name '*.cu' -o -name '*.cpp' -o -name '*.h' | xargs cat | tr '\n' ' ' | grep -oE '[a-z_]*record(_[a-z_]+)?\( *("[^"]+"|[a-z_]+,)')
generic=$(grep -E '^record\( *[a-z_]+,' <<<"$calls" | grep -vxE 'record\( *op,')  # record itself passes its op on
[ -z "$generic" ] || fault 'record() with a name that this search cannot read:' "$generic"
difference=$(diff <(sed -nE 's/^record(_[a-z_]+)?\( *"(.*)"/\2/p' <<<"$calls" | sort -u) <("$build/ricci-check" --list | sort -u)) ||
  fault 'recorded (<) and checked (>) ops differ:' "$difference"

# Every file sees core/tensor.h, so it includes nothing that takes long to compile.
heavy=$(grep -n '#include' core/tensor.h core/storage.h core/dtype.h | grep -vE '<(cstdint|initializer_list)>|"core/(storage|dtype)\.h"')
[ -z "$heavy" ] || fault 'core/tensor.h includes more:' "$heavy"

# Each public op is defined in exactly one object: the CPU half comes from the C++ build, never from nvcc's. And no program defines what
# the library of all programs defines: two objects of the library cannot, but of a program and a library the linker takes the program's.
find "$build" -name '*.o' -exec nm -A --defined-only {} + >"$work/symbols"
ops=$(grep -rlE '^namespace ricci \{' ops --include='*.h' | xargs awk '/^namespace ricci \{/ { inner = 0 } /^namespace [a-z_]+_kernels \{/ { inner = 1 } /^}  \/\/ namespace/ { inner = 0 } !inner' |  # ricci::name is not public
  sed -nE 's/^(Tensor|std::array<Tensor, [0-9]+>|double|void) ([a-z_]+)\(.*[;,]$/\2/p' | sort -u)
awk '$1 ~ /ricci_/ && $2 == "T" && $3 ~ /^_ZN5ricci[0-9]/ { print $3 }' "$work/symbols" | c++filt | sed -nE 's/^ricci::([a-z_]+)(\[abi:[^]]*\])?\(/\1(/p' | sort >"$work/defined"
[ "$(wc -w <<<"$ops")" -gt 50 ] || fault 'too few public ops were found'
undefined=$(comm -23 <(echo "$ops") <(sed 's/(.*//' "$work/defined" | sort -u))
[ -z "$undefined" ] || fault 'declared and defined nowhere:' "$undefined"
doubled=$(uniq -d "$work/defined" | grep -E "^($(paste -sd '|' <<<"$ops"))\(")
[ -z "$doubled" ] || fault 'defined more than once:' "$doubled"
# Some tests are built from the sources that they test, without the library.
strong() { awk -v in_path="$1" -v not_in="$2" '$1 ~ in_path && (not_in == "" || $1 !~ not_in) && $2 ~ /^[TDBR]$/ && $3 != "main" { print $3 }' "$work/symbols" | sort -u; }
strong '/ricci_[a-z_]*_objects' '' >"$work/library"
strong '/ricci-' 'toolkit|ricci-(bounded|mutants)' >"$work/programs"
[ "$(wc -l <"$work/library")" -gt 1000 ] && [ -s "$work/programs" ] || fault 'too few symbols were found'
both=$(comm -12 "$work/library" "$work/programs" | c++filt)
[ -z "$both" ] || fault 'defined by a program and by the library:' "$both"

# The workflows of GitHub: bash reads their commands, and what they, tests/run.sh and apps/install_packages.sh name exists: scripts that can
# be started, presets with their build folders, and packages, where this system is the one of the workflows and has lists of packages.
workflows=(.github/workflows/*.yml)
# The commands: what follows `run:` in its line, or the lines below `run: |` that are further to the right.
commands=$(awk '
  { match($0, /^ */); indent = RLENGTH }
  block && NF && indent <= block { block = 0 }
  block { print }
  match($0, /^ *(- )?run: */) { rest = substr($0, RLENGTH + 1); if (rest ~ /^[|]/) block = indent + 1; else print rest }' "${workflows[@]}")
bash -n <<<"$commands" || fault "${workflows[*]}: bash cannot read their commands"
! python3 -c 'import yaml' 2>/dev/null || python3 -c 'import sys, yaml; [yaml.safe_load(open(file)) for file in sys.argv[1:]]' "${workflows[@]}" ||
  fault "${workflows[*]}: not YAML"
scripts=$({ echo "$commands"; grep -v '^ *#' tests/run.sh; } | grep -oE '(\./)?(apps|tests|\.ci)/[A-Za-z0-9_/.-]*\.sh' | sort -u)
for script in $scripts; do [ -f "$script" ] && [ -x "$script" ] || fault "${workflows[*]}: $script cannot be started"; done
presets=$(grep -oE 'presets\+?=\([a-z0-9 ]+\)' tests/run.sh | sed -E 's/.*\((.*)\)/\1/' | xargs)
for preset in $presets; do
  grep -qE "\"name\": \"$preset\".*\"binaryDir\": \"build-$preset\"" CMakePresets.json ||
    fault "CMakePresets.json: no preset $preset with the folder build-$preset"
done
# Words after `install` and the options of apt-get, and those of the lists of packages.
packages=$({ grep -oE 'apt-get install.*' <<<"$commands" | tr ' ' '\n' | grep -vxE -- 'apt-get|install|-.*'
  sed -nE 's/^ *(tools|libraries|packages)\+?=\(([^")]*).*/\2/p' apps/install_packages.sh tests/run.sh | tr ' ' '\n'; } | grep . | sort -u)
image=$(grep -ohE 'image: [a-z0-9:.]+' "${workflows[@]}" | cut -d ' ' -f 2 | sort -u)
if [ "$image" = "$(. /etc/os-release && echo "$ID:${VERSION_ID:-}")" ] && [ -n "$(apt-cache pkgnames libxxhash 2>/dev/null)" ]; then
  unknown=$(comm -23 <(echo "$packages") <(apt-cache show $packages 2>/dev/null | sed -n 's/^Package: //p' | sort -u))
  [ -z "$unknown" ] || fault "$image does not have the packages:" "$unknown"
fi
[ "$(wc -l <<<"$commands")" -ge 4 ] && [ "$(wc -w <<<"$scripts")" -ge 2 ] && [ "$(wc -w <<<"$presets")" = 6 ] && [ "$(wc -w <<<"$packages")" -ge 25 ] ||
  fault "only $(wc -l <<<"$commands") lines of commands, $(wc -w <<<"$scripts") scripts, $(wc -w <<<"$presets") presets, $(wc -w <<<"$packages") packages were found"

# apps/install_packages.sh where a package is missing, and so is the program that would install it: one line on stderr.
for tool in bash grep; do ln -s "$(command -v $tool)" "$work/$tool"; done
printf '#!/bin/sh\nexit 1\n' >"$work/dpkg-query"  # no package is installed
printf '#!/bin/sh\necho 1000\n' >"$work/id"       # and the user is not root
chmod +x "$work/dpkg-query" "$work/id"
for missing in 'apt-get was not found: g' 'sudo was not found; as root: apt-get install g'; do
  text=$(PATH=$work "$work/bash" apps/install_packages.sh 2>&1)
  [ $? = 1 ] && grep -qxE "ricci needs these packages, but $missing\+\+ cmake .*libxxhash-dev" <<<"$text" && [ "$(grep -c '' <<<"$text")" = 1 ] ||
    fault "apps/install_packages.sh with $missing: $text"
  ln -sf /bin/true "$work/apt-get"
done

echo "$(wc -w <<<"$ops") public ops, $(wc -w <<<"$kernels") files with kernels, $(wc -w <<<"$scripts $presets $packages") names in the workflow, $failures faults"
exit $((failures > 0))

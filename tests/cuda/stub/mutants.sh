#!/usr/bin/env bash
# Do the tests on the stub notice mistakes in cuda/toolkit? Each line of mutants.txt is one mistake, a mutant: a missing transpose, a status
# that is dropped. Its file is compiled with it, the toolkit linked anew, and the tests must fail. A mutant with which they do not end in
# time is neither caught nor missed: it needs a test that fails.
#   mutants.sh BUILD COMPILER HEADERS
# BUILD is a folder in which ricci-toolkit-tests was built, HEADERS that of the CUDA toolkit.
set -u
readonly build=$1 compiler=$2 headers=$3 here=$(cd "$(dirname "$0")" && pwd) seconds=200
readonly root=${here%/tests/cuda/stub}

# try NUMBER LINE: the outcome of one mutant; number 0 is none.
try() {
  local line="$2 " && local rest=${line#* | } kind=${2%% | *}
  local file=${rest%% | *} && rest=${rest#* | }
  local text=${rest%% | *} mistake=${rest#* | } source folder=$work/$1 objects
  [ "$1" != 0 ] || file=cublas.cpp kind='no mistake' text='' mistake=''
  source=$(cat "$root/cuda/toolkit/$file") && mkdir "$folder" || return
  local without=${source//"$text"/}
  [ "$1" = 0 ] || [ $((${#source} - ${#without})) -eq ${#text} ] || { echo "$1: $file does not have '$text' once"; return; }
  { echo "#line 1 \"$file\"" && printf '%s\n' "${source/"$text"/"$mistake"}"; } >"$folder/$file"
  "$compiler" -std=c++20 -O0 -w -fPIC -I"$root" -isystem "$headers" -DRICCI_HAS_CUDA '-DRICCI_CUDA_ARCHITECTURES="90-real"' \
    '-DRICCI_CUDA_LIBRARIES="/nowhere"' -c "$folder/$file" -o "$folder/mutant.o" 2>"$folder/log" || { echo "$1: does not compile: $2"; return; }
  objects=$(find "$build" -path "*ricci-stubbed-toolkit.dir*/*.o" ! -name "$file.o")
  "$compiler" -shared --coverage -o "$folder/libricci-stubbed-toolkit.so" "$folder/mutant.o" $objects || return
  # What takes longest runs last: few mutants get so far.
  local code=0
  for tests in '*/toolkit_test.cpp,*/products_test.cpp,*/graph_test.cpp,*/stream_test.cpp' '*/gemm_test.cpp'; do
    [ $code -ne 0 ] || LD_LIBRARY_PATH=$folder:$build/stub GCOV_PREFIX=$folder timeout "$seconds" "$build/ricci-toolkit-tests" \
      --abort-after=1 "--source-file=$tests" '--test-suite-exclude=needs *' >"$folder/log" 2>&1 || code=$?
  done
  case $code in
    0) echo "$1: missed: $kind ($file: $text)" ;;
    124) echo "$1: timed out: $kind ($file: $text)" ;;
    *) echo "$1: caught: $kind: $(grep -m1 -oE 'TEST CASE: .*' "$folder/log" || tail -n 1 "$folder/log")" ;;
  esac
}

if [ -n "${4:-}" ]; then work=$4 try "$5" "$6"; exit; fi
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
mapfile -t mutants < <(grep -v '^#' "$here/mutants.txt")
for i in "${!mutants[@]}"; do printf '%s\0' $((i + 1)) "${mutants[i]}"; done |
  xargs -0 -n 2 -P "$(nproc)" "$0" "$build" "$compiler" "$headers" "$work" >"$work/outcomes"
work=$work try 0 '' >>"$work/outcomes"
sort -n "$work/outcomes"
caught=$(grep -cE '^[0-9]+: caught' "$work/outcomes") late=$(grep -c ': timed out: ' "$work/outcomes")
echo "${#mutants[@]} mutants: $caught caught, $late timed out, $((${#mutants[@]} - caught - late)) missed"
grep -q '^0: missed: no mistake' "$work/outcomes" || { echo 'without a mistake the tests do not pass'; exit 1; }
[ "$caught" -eq "${#mutants[@]}" ] && [ "$caught" -gt 10 ]

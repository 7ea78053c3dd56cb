#!/usr/bin/env bash
# ricci on a machine with an NVIDIA GPU and no internet: builds, tests and times it, and prints a table of the results.
#   tests/gpu.sh [build|trace|train|test|attention|graph|sanitize|bench|all|table]    all: these parts in this order; table: print it again
# Needs nvcc, CMake, ninja and g++. Libraries come from .deps/ (tests/fetch_deps.sh) or, without it, from the system; cuBLASLt
# also from the packages of PyTorch (tests/gpu/find_cublas.sh). Where it is nowhere, everything runs with our own, slower kernels.
# Each part ends by itself within RICCI_PART_SECONDS (510) and, called again, goes on where it stopped: build-gpu/ keeps
# the objects, and what was measured until the programs change. Each part leaves its log in $OUT (build-gpu/results).
# Where nothing was measured the table says so; without a GPU that is every row but those of the build.
# A program of tests/bench with the option --device reports by lines "measure NAME VALUE UNIT"; where tests/bench/torch/NAME.py
# exists and runs on a GPU, both are put side by side, measure by measure; those that bar_of() knows pass or fail.
# RICCI_GPU_ARCHITECTURE (90) is the GPU to build for.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
PATH=$PATH:/usr/local/cuda/bin:/usr/local/nvidia/bin
root=$PWD build=$PWD/build-gpu
state=$build/state
mkdir -p "$state" "${OUT:=$build/results}" && OUT=$(cd "$OUT" && pwd) || exit 1
architecture=${RICCI_GPU_ARCHITECTURE:-90}
part_seconds=${RICCI_PART_SECONDS:-510}
parts=(build trace train test attention graph sanitize bench)
python=${RICCI_PYTHON:-python3}
# shellcheck disable=SC2034
wrapper=()                     # a program to run ricci-train under
export NVIDIA_TF32_OVERRIDE=0  # f32 means f32, for ricci and for PyTorch

# ---- The table
checks_of() {  # part: its rows as check|bar
  local check
  case $1 in
    build) printf '%s\n' 'configure|nvcc found' 'compile and link|every target' "machine code|sm_$architecture" ;;
    test) printf '%s\n' 'ctest|0 failed' 'skipped on cuda|0' 'other skips|-' 'ricci-check on cuda|1e-6 relative' 'cuBLASLt|loaded' ;;
    sanitize) printf '%s\n' 'memcheck, ops|0 errors' 'racecheck, ops|0 hazards' 'memcheck, training|0 errors' ;;
    trace) echo 'GPT-2 64 x 1024, traced|ends' ;;
    attention)
      echo 'attention|runs'
      for check in "${!bar_of[@]}"; do echo "$check|${bar_of[$check]} x PyTorch"; done | sort
      ;;
    bench) for check in $(other_benches); do echo "$check|runs"; done ;;
    train)
      printf '%s\n' 'f32 losses, cuda to cpu|1e-4 relative' 'out of memory|one line with the op' \
        'GPT-2, batch 64|470000 tokens/s' 'batch 64, PyTorch|1 x PyTorch' 'batch 64, peak memory|1 x PyTorch' 'batch 64, share of peak|-'
      ;;
    graph) printf '%s\n' 'cuda_graph, 20 steps|the same weights' 'batch 4, cuda_graph|2 x PyTorch' 'batch 4, no graph|-' ;;
  esac
}

# The speed that a measure of tests/bench must have, PyTorch's being 1.
declare -A bar_of=(["attention: forward_hd64_causal"]=0.95 ["attention: forward_backward_hd64_causal"]=0.85)

plan() {  # part [reason]: its rows before anything is measured, as check, value, bar, verdict
  checks_of "$1" | awk -F'|' -v reason="${2:+: $2}" '{ print $1 "\tnot measured" reason "\t" $2 "\t-" }'
}

row() {  # check value verdict [bar]: puts it into the rows of the running part
  CHECK=$1 VALUE=$2 VERDICT=$3 BAR=${4:-} awk -F'\t' -v OFS='\t' '
    $1 == ENVIRON["CHECK"] { found = 1; $2 = ENVIRON["VALUE"]; $4 = ENVIRON["VERDICT"] }
    $1 == ENVIRON["CHECK"] && ENVIRON["BAR"] != "" { $3 = ENVIRON["BAR"] }
    { print }
    END { if (!found) print ENVIRON["CHECK"], ENVIRON["VALUE"], ENVIRON["BAR"], ENVIRON["VERDICT"] }' \
    "$rows" > "$rows.new" && mv "$rows.new" "$rows"
}

verdict() { if "$@"; then echo pass; else echo FAIL; fi; }

# A program, or the library of all programs, was linked after this file was written.
outdated() { [ -n "$(find "$build" -maxdepth 1 -type f \( -name 'ricci-*' -o -name 'libricci_programs.so' \) -newer "$1")" ]; }

versions() { echo "nvcc $(nvcc --version 2>/dev/null | sed -nE 's/.*V([0-9.]+)$/\1/p'), g++ $(g++ -dumpfullversion)"; }

table() {
  local part file reason
  echo "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo 'no GPU'); $(versions); cuBLASLt: $cublas"
  for part in "${parts[@]}"; do
    file=$state/$part.rows reason=$(why_not "$part")
    if [ -n "$reason" ] || [ ! -e "$file" ]; then
      plan "$part" "$reason"
    elif [ "$part" != build ] && outdated "$file"; then
      plan "$part" "the programs are newer"
    else
      cat "$file"
    fi | sed "s/^/$part\t/"
  done | (echo $'part\tcheck\tvalue\tbar\tverdict' && cat) |
    awk -F'\t' '{ printf "%-9s %-45s %-56s %-20s %s\n", $1, $2, $3, $4, $5 }'
  if [ -s "$state/skips" ] && ! outdated "$state/skips"; then sort "$state/skips" | uniq -c; fi
}

# ---- Running things
limited() {  # seconds command...: at most that long, and not past the end of the part; 124 when it was stopped
  local most=$1 left=$((deadline - SECONDS)) code
  shift
  [ "$left" -gt "$most" ] || most=$left
  [ "$most" -gt 0 ] || { touch "$state/cut"; return 124; }
  timeout --kill-after=10 "$most" "$@"
  code=$?
  if [[ $code = 124 || $code = 137 ]] && [ $((deadline - SECONDS)) -le 0 ]; then touch "$state/cut"; fi
  return "$code"
}

# step ROW COMMAND ...: one measurement, which fills ROW and maybe others. What was measured and did not fail is kept until the
# programs change. Where the part ends before the step does, the row says so.
step() {
  local row=$1
  shift
  if [ "$(awk -F'\t' -v check="$row" '$1 == check { print ($2 !~ /^not measured|run it again$/ && $4 != "FAIL") }' "$rows")" = 1 ]; then
    echo "-- $row: measured before"
    return
  fi
  rm -f "$state/cut"
  if [ $((deadline - SECONDS)) -gt 5 ]; then "$@"; else touch "$state/cut"; fi
  if [ -e "$state/cut" ]; then row "$row" "did not end, run it again" unfinished; fi
}

why_not() {  # part: what is missing to measure anything of it
  local program
  [ "$1" != build ] || return
  nvidia-smi -L 2>/dev/null | grep '^GPU' > /dev/null || { echo "no GPU"; return; }
  for program in ricci-tests ricci-check ricci-train ricci-bench-training ricci-bench-attention; do
    [ -x "$build/$program" ] || { echo "no $program, see build"; return; }
  done
}

run_torch() {  # log script option...: the log stays empty where PyTorch sees no GPU
  local log=$1
  shift
  : > "$log"
  "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || { echo "no PyTorch with CUDA"; return; }
  limited 150 "$python" "$@" 2>&1 | tee "$log"
}

value_of() { measures "$1" | awk -F'\t' -v name="$2" '$1 == name { print $2 }'; }  # log measure: empty where there is none

# ours unit theirs: how many times as fast, or, of anything but rates, as small, ours is; empty where one was not measured.
times_of() {
  awk -v ours="$1" -v unit="$2" -v theirs="$3" \
    'BEGIN { if (ours > 0 && theirs > 0) printf "%.3f", unit ~ /\/s$/ ? ours / theirs : theirs / ours }'
}

verdict_of() {  # value bar: of a number that must be at least the bar; - where there is no value or no bar
  if [ -z "$1" ] || [ -z "$2" ]; then echo -; else verdict awk -v value="$1" -v bar="$2" 'BEGIN { exit !(value >= bar) }'; fi
}

measures() { awk '$1 == "measure" && NF == 4 { print $2 "\t" $3 "\t" $4 }' "$1"; }  # of a log: name, value, unit

# ---- build
# A transfer may date every file anew. Files with the content of the last build get their old date back, so that ninja
# compiles only what changed.
keep_dates() {
  local files=$state/files dates=$state/dates date path
  find CMakeLists.txt README.md core cuda autograd ops models data apps tests .deps -type f 2>/dev/null > "$files"
  touch "$dates"
  paste <(xargs -d '\n' sha256sum < "$files") <(xargs -d '\n' stat -c %.9Y < "$files") |
    awk -F'\t' -v OFS='\t' 'FILENAME != "-" { date[$1] = $2; next }
      { print $1, ($1 in date ? date[$1] : $2) }' "$dates" - > "$dates.new"
  mv "$dates.new" "$dates"
  while IFS=$'\t' read -r path date; do touch -d "@$date" "${path:66}"; done < "$dates"
}

configure() {
  local options=() flags=-Wl,--disable-new-dtags  # a path written so counts for the libraries of libraries, too
  [ ! -d .deps/usr ] || options=(-DCMAKE_PREFIX_PATH="$root/.deps/usr" -DCMAKE_EXE_LINKER_FLAGS="$flags" -DCMAKE_SHARED_LINKER_FLAGS="$flags")
  [ -e "$build/build.ninja" ] || limited 200 cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DRICCI_CUDA=ON -DRICCI_TESTS=ON -DCMAKE_CUDA_ARCHITECTURES="$architecture" "${options[@]}" || return
  grep -q ricci_kernels "$build/build.ninja" || { echo "CMake found no nvcc"; rm "$build/build.ninja"; return 1; }
}

part_build() {
  local programs code began=$SECONDS
  keep_dates
  configure || { row configure "failed, see build.log" FAIL; return; }
  row configure "$(versions), $(if [ -d .deps/usr ]; then echo .deps; else echo 'system libraries'; fi)" pass
  limited "$part_seconds" cmake --build "$build" -j "$(nproc)" -- -k 0
  code=$?
  programs=$(find "$build" -maxdepth 1 -type f -name 'ricci-*' | wc -l)
  case $code in
    0) row "compile and link" "$((SECONDS - began)) s, $programs programs" pass ;;
    124 | 137) row "compile and link" "stopped after $((SECONDS - began)) s, run it again" unfinished ;;
    *) row "compile and link" "failed, see build.log; $programs programs are linked" FAIL ;;
  esac
  command -v cuobjdump >/dev/null || { row "machine code" "not measured: no cuobjdump" -; return; }
  [ -e "$build/libricci_programs.so" ] || return
  programs=$(cuobjdump --list-elf "$build/libricci_programs.so" | grep -oE 'sm_[0-9]+a?' | sort | uniq -c | xargs)
  row "machine code" "${programs:-none}" "$(verdict grep -q "sm_$architecture" <<< "$programs")"
}

# ---- The other parts
. tests/gpu/checks.sh
. tests/gpu/speed.sh
. tests/gpu/train.sh

# ---- Parts
run_part() {
  local reason
  rows=$state/$1.rows deadline=$((SECONDS + part_seconds)) reason=$(why_not "$1")
  echo "== $1${reason:+: not measured: $reason}"
  [ -z "$reason" ] || return
  if [ "$1" = build ] || [ ! -e "$rows" ] || outdated "$rows"; then
    plan "$1" > "$rows"
    rm -f "$OUT/$1.log"
  fi
  "part_$1" 2>&1 | tee -a "$OUT/$1.log"
}

# What the programs load when they make their first product on the GPU.
if folders=$(tests/gpu/find_cublas.sh "$(nvcc --version 2>/dev/null | sed -nE 's/.*release ([0-9]+)\..*/\1/p' | grep . || echo 0)"); then
  [ -z "$folders" ] || export LD_LIBRARY_PATH=$folders${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  cublas=${folders%%:*}
  cublas=${cublas:-installed}
else
  export RICCI_WITHOUT_CUBLAS=1
  cublas='not found, our own kernels instead'
fi

case ${1:-all} in
  all) chosen=("${parts[@]}") ;;
  table) chosen=() ;;
  -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
  *)
    [[ " ${parts[*]} " = *" $1 "* ]] || { sed -n 's/^#   //p' "$0" >&2; exit 2; }
    chosen=("$1")
    ;;
esac
for part in "${chosen[@]}"; do run_part "$part"; done
table | tee "$OUT/table.txt"
any_failed() {
  local part
  for part in "${chosen[@]}"; do
    if [ -z "$(why_not "$part")" ] && grep -qP '\tFAIL$' "$state/$part.rows"; then return 0; fi
  done
  return 1
}
! any_failed

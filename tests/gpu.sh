#!/usr/bin/env bash
# ricci on a machine with an NVIDIA GPU and no internet: builds, tests and times it, and prints a table of the results.
#   tests/gpu.sh [build|smoke|trace|mixers|attention|train|graph|test|sanitize|bench|all|table|pack]
#     all: these parts in this order, as many as the time allows; table: print it again
#     pack: on a machine without a GPU, builds the programs and puts them, stripped and with their libraries, into
#           build-gpu/programs.tar.gz. Taken along, they are used where they start, and nothing is built there.
# Needs python3 and, without those programs, nvcc, CMake, ninja and g++. Libraries come from .deps/ (tests/fetch_deps.sh) or, without
# it, from the system; cuBLASLt also from the packages of PyTorch (tests/gpu/find_cublas.sh). Without it only build, smoke, attention,
# test and sanitize are measured: one step of training on our own products takes half a minute.
# One call ends within RICCI_TOTAL_SECONDS (570), a part within its share of them (limit_of). Called again, it goes on where it
# stopped: what was measured is kept until the part's own programs change. After every part the table is printed, and $OUT
# (build-gpu/results) gets it as table.txt, beside results.tar: logs, rows and what else the next call reads back, from
# build-gpu/results.tar or $OUT/results.tar, if it finds no rows, as on a fresh machine.
# Where nothing was measured the table says so; without a GPU that is every row but those of the build.
# A program of tests/bench with the option --device reports by lines "measure NAME VALUE UNIT"; where tests/bench/torch/NAME.py
# exists and runs on a GPU, both are put side by side, measure by measure; those that bar_of() knows pass or fail.
# RICCI_GPU_ARCHITECTURE (90a) is the GPU to build for.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C  # sorts alike on every machine
PATH=$PATH:/usr/local/cuda/bin:/usr/local/nvidia/bin
root=$PWD build=${RICCI_BUILD:-$PWD/build-gpu}
state=$build/state logs=$build/logs
mkdir -p "$state" "$logs" "${OUT:=$build/results}" && OUT=$(cd "$OUT" && pwd) || exit 1
architecture=${RICCI_GPU_ARCHITECTURE:-90a}
finish=$((SECONDS + ${RICCI_TOTAL_SECONDS:-570}))
parts=(build smoke trace mixers attention train graph test sanitize bench)
python=${RICCI_PYTHON:-python3}
# shellcheck disable=SC2034
wrapper=()                     # a program to run ricci-train under
[ ! -d .deps/usr ] || export CMAKE_PREFIX_PATH=$root/.deps/usr
export NVIDIA_TF32_OVERRIDE=0  # f32 means f32, for ricci and for PyTorch

# ---- The table
checks_of() {  # part: its rows as check|bar
  local check
  case $1 in
    build) printf '%s\n' 'configure|nvcc found' 'compile and link|every target' "machine code|sm_$architecture" ;;
    smoke) printf '%s\n' 'ricci-check on cuda|1e-6 relative' 'cuBLASLt|loaded' 'copy bandwidth|-' 'product peak, bf16|-' ;;
    test) printf '%s\n' 'ctest, GPU|0 failed' 'skipped on cuda|0' 'other skips|-' ;;
    mixers) printf '%s\n' 'shift_and_sum, forward|50 % of a copy' 'shift_and_sum, forward_backward|50 % of a copy' ;;
    sanitize) printf '%s\n' 'memcheck, ops|0 errors' 'racecheck, ops|0 hazards' 'memcheck, training|0 errors' ;;
    trace) echo 'GPT-2 64 x 1024, traced|ends' ;;
    attention)
      printf '%s\n' 'attention|runs' 'attention, packed|runs'
      for check in "${!bar_of[@]}"; do echo "$check|${bar_of[$check]} x PyTorch"; done | sort
      ;;
    bench) for check in $(other_benches); do echo "$check|runs"; done ;;
    train)
      printf '%s\n' 'f32 losses, cuda to cpu|1e-4 relative' 'out of memory|one line with the op' \
        'GPT-2, batch 64|470000 tokens/s' 'batch 64, PyTorch|1 x PyTorch' 'batch 64, peak memory|1 x PyTorch' 'batch 64, share of peak|-' \
        'batch 64, tuned|-' 'batch 64, fused|-'
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

# ---- The programs: those that were taken along, if they start, or those of the build.
programs_of() {  # part: its own
  case $1 in
    smoke) echo check bench-products ;;
    trace) echo bench-training ;;
    mixers) echo bench-mixers ;;
    attention) echo bench-attention ;;
    train | graph) echo train bench-training ;;
    test) echo tests check ;;
    sanitize) echo check train ;;
    bench) for name in $(other_benches); do echo "bench-$name"; done ;;
  esac
}

# A checksum of everything that is compiled.
sources() {
  find CMakeLists.txt core cuda autograd ops models data apps tests -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \
    -o -name '*.cmake' -o -name CMakeLists.txt \) -print0 2> /dev/null | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16
}

find_programs() {  # sets bin, and print_of: the checksum of each part's programs, with the library of all
  local part packed=$build/programs.tar.gz
  bin=$build
  if [ -e "$packed" ] && [ "$packed" -nt "$build/programs" ]; then
    rm -rf "$build/programs" && mkdir "$build/programs" && tar -xf "$packed" -C "$build/programs" && touch "$build/programs"
  fi
  if [ -d "$build/programs" ] && [ "$(cat "$build/programs/sources" 2> /dev/null)" != "$(sources)" ]; then
    echo "programs.tar.gz was made from other sources and is not used" >&2
  elif [ -x "$build/programs/ricci-check" ] && with_libraries "$build/programs" "$build/programs/ricci-check" --list > /dev/null 2>&1; then
    bin=$build/programs
  fi
  for part in "${parts[@]}"; do
    print_of[$part]=$(for name in $(programs_of "$part"); do echo "$bin/ricci-$name"; done |
      cat - <(echo "$bin/libricci_programs.so") | xargs cat 2> /dev/null | sha256sum | cut -c1-16)
  done
}
declare -A print_of=()
with_libraries() { LD_LIBRARY_PATH=$1${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "${@:2}"; }  # folder command...

# What was measured of the part, or is kept in the file, is of other programs.
outdated() { [ "$(cat "$state/$1.print" 2> /dev/null)" != "${print_of[$1]}" ]; }  # part

toolkit_major() { nvcc --version 2> /dev/null | sed -nE 's/.*release ([0-9]+)\..*/\1/p' | grep .; }
versions() { echo "nvcc $(nvcc --version 2>/dev/null | sed -nE 's/.*V([0-9.]+)$/\1/p'), g++ $(g++ -dumpfullversion)"; }

table() {
  local part file reason
  echo "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo 'no GPU'); $(versions); cuBLASLt: $cublas"
  for part in "${parts[@]}"; do
    file=$state/$part.rows reason=$(why_not "$part")
    if [ -n "$reason" ] || [ ! -e "$file" ]; then
      plan "$part" "$reason"
    elif [ "$part" != build ] && outdated "$part"; then
      plan "$part" "the programs have changed"
    else
      cat "$file"
    fi | sed "s/^/$part\t/"
  done | (echo $'part\tcheck\tvalue\tbar\tverdict' && cat) |
    awk -F'\t' '{ printf "%-9s %-45s %-56s %-20s %s\n", $1, $2, $3, $4, $5 }'
  if [ -s "$state/skips" ] && ! outdated test; then sort "$state/skips" | uniq -c; fi
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
# programs change. Where the part ends before the step does, the row says so. With `least` set the step is left to the next call
# where fewer seconds are left.
step() {
  local row=$1
  shift
  if [ "$(awk -F'\t' -v check="$row" '$1 == check { print ($2 !~ /^not measured|run it again$/ && $4 != "FAIL") }' "$rows")" = 1 ]; then
    echo "-- $row: measured before"
    return
  fi
  rm -f "$state/cut"
  if [ $((deadline - SECONDS)) -gt "${least:-5}" ]; then "$@"; else touch "$state/cut"; fi
  if [ -e "$state/cut" ]; then row "$row" "did not end, run it again" unfinished; fi
}

why_not() {  # part: what is missing to measure anything of it
  local program
  [ "$1" != build ] || return
  nvidia-smi -L 2>/dev/null | grep '^GPU' > /dev/null || { echo "no GPU"; return; }
  for program in $(programs_of "$1"); do
    [ "$1" = bench ] || [ -x "$bin/ricci-$program" ] || { echo "no ricci-$program, see build"; return; }
  done
  if [ "$1" = test ] && ! command -v ctest > /dev/null; then echo "no ctest"; fi
  if [[ $1 =~ ^(trace|mixers|train|graph|bench)$ && -n ${RICCI_WITHOUT_CUBLAS:-} ]]; then echo "no cuBLASLt"; fi
}

run_torch() {  # seconds log script option...: the log stays empty where PyTorch sees no GPU
  local most=$1 log=$2
  shift 2
  : > "$log"
  "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || { echo "no PyTorch with CUDA"; return; }
  limited "$most" "$python" "$@" 2>&1 | tee "$log"
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

# ---- The other parts
# shellcheck source=/dev/null
. tests/gpu/build.sh
. tests/gpu/checks.sh
. tests/gpu/speed.sh
. tests/gpu/train.sh

# ---- Parts
limit_of() {  # part: the most seconds that it takes of a call, so that others have their turn
  case $1 in
    build | train) echo 330 ;;
    graph | test | sanitize | bench) echo 180 ;;
    *) echo 90 ;;
  esac
}

run_part() {  # part
  local reason most
  most=$(limit_of "$1")
  [ "${#chosen[@]}" != 1 ] || most=$((finish - SECONDS))
  rows=$state/$1.rows deadline=$((SECONDS + most)) reason=$(why_not "$1")
  [ "$deadline" -lt "$finish" ] || deadline=$finish
  echo "== $1${reason:+: not measured: $reason}"
  [ -z "$reason" ] || return
  if [ "$1" = build ] || [ ! -e "$rows" ] || outdated "$1"; then
    plan "$1" > "$rows"
    echo "${print_of[$1]}" > "$state/$1.print"
    rm -f "$logs/$1.log"
  fi
  "part_$1" 2>&1 | tee -a "$logs/$1.log"
  [ "$1" != build ] || find_programs
}

# Everything that the next call, on this machine or another, needs to go on.
keep_results() {
  table > "$OUT/table.txt"
  (cd "$build" && find state logs -type f \( -name '*.rows' -o -name '*.print' -o -name '*.log' -o -name ctest -o -name skips -o -name peaks \
    -o -name '*.clean' -o -name '*.none' \) -size -4000k -print0 | tar -cf "$OUT/results.tar.new" --null -T -)
  mv "$OUT/results.tar.new" "$OUT/results.tar"
}

read_back() {
  local archive
  [ -z "$(find "$state" -name '*.rows' -print -quit)" ] || return
  for archive in "$build/results.tar" "$OUT/results.tar"; do
    [ -e "$archive" ] || continue
    tar -xf "$archive" -C "$build" && echo "goes on with ${archive#"$root/"}" && return
  done
}

case ${1:-all} in
  all) chosen=("${parts[@]}") ;;
  table) chosen=() ;;
  pack) pack_programs; exit ;;
  -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
  *)
    [[ " ${parts[*]} " = *" $1 "* ]] || { sed -n 's/^#   //p' "$0" >&2; exit 2; }
    chosen=("$1")
    ;;
esac
read_back
find_programs
# What the programs load when they make their first product on the GPU.
if folders=$(tests/gpu/find_cublas.sh "$(cat "$bin/cuda_major" 2> /dev/null || toolkit_major || echo 0)"); then
  [ -z "$folders" ] || export LD_LIBRARY_PATH=$folders${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  cublas=${folders%%:*}
  cublas=${cublas:-installed}
else
  export RICCI_WITHOUT_CUBLAS=1
  cublas='not found, our own kernels instead'
fi

export LD_LIBRARY_PATH=$bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
for part in "${chosen[@]}"; do
  run_part "$part"
  keep_results
  cat "$OUT/table.txt"
done
if [ ${#chosen[@]} = 0 ]; then keep_results; cat "$OUT/table.txt"; fi
any_failed() {
  local part
  for part in "${chosen[@]}"; do
    if [ -z "$(why_not "$part")" ] && grep -qP '\tFAIL$' "$state/$part.rows"; then return 0; fi
  done
  return 1
}
! any_failed

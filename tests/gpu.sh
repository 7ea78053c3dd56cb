#!/usr/bin/env bash
# ricci on a machine with an NVIDIA GPU and no internet: builds, tests and times it, and prints a table of the results.
#   tests/gpu.sh [build|test|sanitize|bench|train|graph|all|table]    all: the six parts in this order; table: print it again
# Needs nvcc, CMake, ninja and g++. Libraries come from .deps/ (tests/fetch_deps.sh) or, without it, from the system.
# Each part ends by itself within RICCI_PART_SECONDS (510) and, called again, goes on where it stopped: build-gpu/ keeps
# the objects, and what was tested until the programs change. Each part leaves its log in $OUT (build-gpu/results).
# Where nothing was measured the table says so; without a GPU that is every row but those of the build.
# A program of tests/bench reports by lines "measure NAME VALUE UNIT"; where tests/bench/torch_NAME.py exists beside
# NAME.cpp and runs on a GPU, both are put side by side, measure by measure; those that bar_of() knows pass or fail.
# RICCI_GPU_ARCHITECTURE (90) is the GPU to build for.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
PATH=$PATH:/usr/local/cuda/bin:/usr/local/nvidia/bin
root=$PWD build=$PWD/build-gpu
state=$build/state
mkdir -p "$state" "${OUT:=$build/results}" && OUT=$(cd "$OUT" && pwd) || exit 1
architecture=${RICCI_GPU_ARCHITECTURE:-90}
part_seconds=${RICCI_PART_SECONDS:-510}
parts=(build test sanitize bench train graph)
wrapper=()                     # a program to run ricci-train under
export NVIDIA_TF32_OVERRIDE=0  # f32 means f32, for ricci and for PyTorch

# ---- The table
checks_of() {  # part: its rows as check|bar
  local source
  case $1 in
    build) printf '%s\n' 'configure|nvcc found' 'compile and link|every target' "machine code|sm_$architecture" ;;
    test) printf '%s\n' 'ctest|0 failed' 'skipped on cuda|0' 'other skips|-' 'ricci-check on cuda|1e-6 relative' 'cuBLASLt|loaded' ;;
    sanitize) printf '%s\n' 'memcheck, ops|0 errors' 'racecheck, ops|0 hazards' 'memcheck, training|0 errors' ;;
    bench)
      for source in tests/bench/*.cpp; do echo "$(basename "$source" .cpp)|runs"; done
      for source in "${!bar_of[@]}"; do echo "$source|${bar_of[$source]} x PyTorch"; done | sort
      ;;
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

# A program was linked after this file was written.
outdated() { [ -n "$(find "$build" -maxdepth 1 -type f -name 'ricci-*' -newer "$1")" ]; }

versions() { echo "nvcc $(nvcc --version 2>/dev/null | sed -nE 's/.*V([0-9.]+)$/\1/p'), g++ $(g++ -dumpfullversion)"; }

table() {
  local part file reason
  echo "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo 'no GPU'); $(versions)"
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
  local most=$1 left=$((deadline - SECONDS))
  shift
  [ "$left" -gt "$most" ] || most=$left
  [ "$most" -gt 0 ] || return 124
  timeout --kill-after=10 "$most" "$@"
}

why_not() {  # part: what is missing to measure anything of it
  local program
  [ "$1" != build ] || return
  nvidia-smi -L 2>/dev/null | grep -q '^GPU' || { echo "no GPU"; return; }
  for program in ricci-tests ricci-check ricci-train; do
    [ -x "$build/$program" ] || { echo "no $program, see build"; return; }
  done
}

run_torch() {  # log script option...: the log stays empty where PyTorch sees no GPU
  local log=$1
  shift
  : > "$log"
  python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || { echo "no PyTorch with CUDA"; return; }
  limited 150 python3 "$@" 2>&1 | tee "$log"
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
  [ ! -d .deps/usr ] || options=(-DCMAKE_PREFIX_PATH="$root/.deps/usr" -DCMAKE_EXE_LINKER_FLAGS="$flags")
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
  command -v cuobjdump >/dev/null && [ -x "$build/ricci-train" ] || return
  programs=$(cuobjdump --list-elf "$build/ricci-train" | grep -oE 'sm_[0-9]+a?' | sort | uniq -c | xargs)
  row "machine code" "${programs:-none}" "$(verdict grep -q "sm_$architecture" <<< "$programs")"
}

# ---- test
tests_that() {  # passed, skipped or failed
  awk -v how="$1" '{ last[$1] = $2 } END { for (test in last) if (last[test] ~ how) print test }' "$state/ctest" | sort
}

# state/ctest: lines "test result" of all calls, the last one counts. Tests that failed are run again by the next call.
part_test() {
  local remaining left cuda failed
  if [ ! -e "$state/ctest" ] || outdated "$state/ctest"; then : > "$state/ctest"; : > "$state/skips"; fi
  ctest --test-dir "$build" -N | sed -nE 's/^ *Test +#[0-9]+: //p' | sort > "$state/tests"
  remaining=$(comm -23 "$state/tests" <(tests_that 'passed|skipped') | paste -sd'|')
  if [ -n "$remaining" ]; then
    limited "$part_seconds" ctest --test-dir "$build" -V -j "$(nproc)" --timeout 240 -R "^($remaining)\$" |
      tee "$state/ctest.out"
    awk '/^ *[0-9]+\/[0-9]+ Test +#/ { print $4, / Passed / ? "passed" : /\*\*\*Skipped/ ? "skipped" : "failed" }' \
      "$state/ctest.out" >> "$state/ctest"
    grep -E '^[0-9]+: ' "$state/ctest.out" | grep -oE 'skipped( on [a-z_]+)?: .*' >> "$state/skips"
  fi
  failed=$(tests_that failed | xargs) left=$(comm -23 "$state/tests" <(tests_that .) | wc -l)
  row ctest "$(tests_that passed | wc -l) passed, $(tests_that skipped | wc -l) skipped, failed: ${failed:-none}" \
    "$(verdict test -s "$state/tests" -a -z "$failed")"
  [ "$left" = 0 ] || [ -n "$failed" ] || row ctest "none failed, $left did not end, run it again" unfinished
  cuda=$(grep -c '^skipped on cuda:' "$state/skips")
  row "skipped on cuda" "$cuda" "$(verdict test "$cuda" = 0)"
  row "other skips" "$(grep -vc '^skipped on cuda:' "$state/skips"), listed below" -
  check_gradients
}

check_gradients() {
  local output=$state/check.out code last worst
  limited 240 "$build/ricci-check" --device cuda 2> "$output.err" | tee "$output"
  code=$? last=$(tail -n 1 "$output")
  worst=$(awk '$3 ~ /e[-+]/ && $3 > worst { worst = $3 } END { print worst }' "$output")
  if [ $code = 124 ]; then
    row "ricci-check on cuda" "did not end, run it again" unfinished
  else
    row "ricci-check on cuda" "${last%% (*}, worst ${worst:-not measured}" "$(verdict test $code = 0 -a -n "$worst")"
    row cuBLASLt "$(grep -o 'libcublasLt.*' "$output.err" || echo loaded)" "$(verdict test ! -s "$output.err")"
  fi
  cat "$output.err"
}

# ---- sanitize
sanitize_op() {  # tool op: leaves OP.clean, OP.bad, OP.none (it has no gradient check) or, if stopped, nothing
  local file=$state/sanitize/$1/$2
  limited 150 compute-sanitizer --tool "$1" "$build/ricci-check" --device cuda --op "$2" > "$file.log" 2>&1
  if grep -q 'no op is called' "$file.log"; then
    touch "$file.none"
  elif grep -q 'wrong (tolerance' "$file.log"; then
    if grep -qE '(ERROR|RACECHECK) SUMMARY: 0 ' "$file.log"; then touch "$file.clean"; else touch "$file.bad"; fi
  fi
}

sanitize_ops() {  # tool: six ops at a time; those that were clean are not run again
  local folder=$state/sanitize/$1 op ops clean bad left
  if [ -e "$folder/begun" ] && outdated "$folder/begun"; then rm -r "$folder"; fi
  mkdir -p "$folder" && rm -f "$folder"/*.bad && touch -a "$folder/begun"
  mapfile -t ops < <("$build/ricci-check" --list)
  for op in "${ops[@]}"; do
    if [ -e "$folder/$op.clean" ] || [ -e "$folder/$op.none" ] || [ $((deadline - SECONDS)) -lt 20 ]; then continue; fi
    while [ "$(jobs -rp | wc -l)" -ge 6 ]; do wait -n; done
    sanitize_op "$1" "$op" &
  done
  wait
  for op in "$folder"/*.bad; do [ ! -e "$op" ] || head -c 200000 "${op%.bad}.log"; done
  bad=$(find "$folder" -name '*.bad' | wc -l) clean=$(find "$folder" -name '*.clean' | wc -l)
  left=$((${#ops[@]} - bad - $(find "$folder" -name '*.none' -o -name '*.clean' | wc -l)))
  row "$1, ops" "$clean clean, $bad with findings, $left did not end" "$(verdict test "$bad" = 0 -a "$clean" -gt 0)"
  [ "$left" = 0 ] || [ "$bad" != 0 ] || row "$1, ops" "$clean clean, $left did not end, run it again" unfinished
}

part_sanitize() {
  local log=$state/sanitize/training.log
  command -v compute-sanitizer >/dev/null || { plan sanitize "no compute-sanitizer" > "$rows"; return; }
  sanitize_ops memcheck
  sanitize_ops racecheck
  wrapper=(compute-sanitizer --tool memcheck)
  train_run 120 memcheck device=cuda steps=2 model.layers=1 batch=4 train_fraction=0.999 2>&1 | tee "$log"
  if grep -q 'after 2 steps' "$log"; then
    row "memcheck, training" "$(grep -o 'ERROR SUMMARY: .*' "$log")" "$(verdict grep -q 'ERROR SUMMARY: 0 ' "$log")"
  else
    row "memcheck, training" "training failed or did not end, see sanitize.log" unfinished
  fi
}

# ---- bench
bench_one() {  # name
  local program=$build/ricci-bench-$1 source=tests/bench/$1.cpp script=tests/bench/torch_$1.py options=()
  local ours=$state/bench.ours theirs=$state/bench.theirs check value unit times bar
  ! grep -q -e '"--device"' "$source" || options=(--device cuda)
  limited 120 "$program" "${options[@]}" 2>&1 | tee "$ours" || { row "$1" "failed, see bench.log" FAIL; return; }
  : > "$theirs"
  ! grep -qs -e '"--device"' "$script" || run_torch "$theirs" "$script" --device cuda
  row "$1" "ran: $(measures "$ours" | wc -l) measures, PyTorch $(measures "$theirs" | wc -l)" pass
  while IFS=$'\t' read -r check value unit; do
    times=$(times_of "$value" "$unit" "$(value_of "$theirs" "$check")") bar=${bar_of["$1: $check"]:-}
    row "$1: $check" "$value $unit${times:+, $times x PyTorch}" "$(verdict_of "$times" "$bar")" "${bar:--}${bar:+ x PyTorch}"
  done < <(measures "$ours")
}

part_bench() { for source in tests/bench/*.cpp; do bench_one "$(basename "$source" .cpp)"; done; }

# ---- train, graph
. tests/gpu_train.sh

# ---- Parts
run_part() {
  local reason
  rows=$state/$1.rows deadline=$((SECONDS + part_seconds)) reason=$(why_not "$1")
  plan "$1" "$reason" > "$rows"
  echo "== $1${reason:+: not measured: $reason}"
  [ -n "$reason" ] || "part_$1" 2>&1 | tee "$OUT/$1.log"
}

case ${1:-all} in
  all) chosen=("${parts[@]}") ;;
  table) chosen=() ;;
  build | test | sanitize | bench | train | graph) chosen=("$1") ;;
  *) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
esac
for part in "${chosen[@]}"; do run_part "$part"; done
table | tee "$OUT/table.txt"
for part in "${chosen[@]}"; do ! grep -qP '\tFAIL$' "$state/$part.rows" || exit 1; done

#!/usr/bin/env bash
# Verifies ricci on a machine with an NVIDIA GPU and writes one table of the results. Commands:
#   tests/gpu.sh first      all checks and times, from simple to hard, in at most 560 s
#   tests/gpu.sh repairs    after it, in at most 195 s: failed tests under memcheck, the largest kernels under ncu, unfinished steps
#   tests/gpu.sh papers     rows of the Dispatcher paper's table 1 and its figure 2, in at most 560 s
#   tests/gpu.sh pack       on a machine without a GPU: puts the programs, their libraries and, from RICCI_DATA, the texts of the papers into
#                           build-gpu/programs.tar.gz
#   tests/gpu.sh rehearse   after it: uses that package in a root folder with only the libraries of C and C++
# A GPU is rented by the minute, so nothing is built there: the programs come from the package or, without it, from the build RICCI_BUILD
# (tests/run.sh makes build-test). Programs of other sources are also used, and their rows are marked. PyTorch, ctest, compute-sanitizer and
# ncu are used if they are installed.
# A part that fails, hangs or is killed ends at its limit, and the next one begins.
# RICCI_TOTAL_SECONDS changes the time of a command, and RICCI_CLOCK=0.05 makes every second shorter: the limits scale with both.
# $OUT (build-gpu/results) receives table.txt, failures.txt, results.tar with rows and logs, and inductor.tar.gz, the kernels compiled by
# PyTorch. On a new machine the next command reads the last two from build-gpu. Exit code 1: something failed or was not measured.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C  # the same decimal point and order of names on every machine
PATH=$PATH:/usr/local/cuda/bin:/usr/local/nvidia/bin
root=$PWD build=$(realpath -m "${RICCI_BUILD:-build-gpu}") python=${RICCI_PYTHON:-python3}
state=$build/state logs=$build/logs
mkdir -p "$state" "$logs" "${OUT:=$build/results}" && OUT=$(realpath "$OUT") || exit 1
export NVIDIA_TF32_OVERRIDE=0  # f32 means f32, for ricci and for PyTorch
export OMP_WAIT_POLICY=passive PYTHONUNBUFFERED=1
export TORCHINDUCTOR_CACHE_DIR=$build/inductor RICCI_TESTS_FOLDER=$root/tests
# shellcheck disable=SC2034  # for build.sh
architecture=${RICCI_GPU_ARCHITECTURE:-90a}

# The parts of a command, with their seconds.
first=(hello:15 smoke:40 test:75 again:30 attention:50 gpt2:110 mixers:50 products:30 trace:25 graph:35 train:35 sanitize:45 memory:15)
declare -A parts_of=([first]="${first[*]}" [repairs]="memcheck:55 kernels:50" [papers]=papers:560)
declare -A seconds_of=([first]=560 [repairs]=195 [papers]=560)

# ---- The table: rows of part, check, value, estimate, bar, verdict (pass, FAIL, unfinished, or - for a figure without a bar). The file only
# grows, so a kill cannot damage it: the last line of a row is valid.
row() {  # check value verdict [estimate] [bar]: changes the row of the running part, or adds it
  local value=${2//"$root/"/}
  value=${value//[$'\t\n']/ }
  [ -n "$planning" ] || value+=$mark
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$part" "$1" "$value" "${4:-}" "${5:-}" "$3" >> "$state/rows"
}
result() { row "$check" "$@"; }  # value verdict [estimate] [bar]: of the running step
verdict() { if "$@"; then echo pass; else echo FAIL; fi; }

# check [estimate] [bar]: a row before anything is measured, while the parts are called to list their rows
plan() { [ -z "$planning" ] || row "$1" "$planning" - "${2:--}" "${3:--}"; }
planning=

rows() {  # [part] [check]: as they are now, part by part
  awk -F'\t' -v part="${1:-}" -v check="${2:-}" '
    part != "" && $1 != part || check != "" && $2 != check { next }
    { row = $1 FS $2 }
    !(row in verdict) { order[$1] = order[$1] "\n" row; estimate[row] = bar[row] = "-" }
    !($1 in seen) { seen[$1] = parts[++n] = $1 }
    { value[row] = $3; verdict[row] = $6 }
    $4 != "" { estimate[row] = $4 }
    $5 != "" { bar[row] = $5 }
    END {
      for (i = 1; i <= n; ++i) {
        of = split(substr(order[parts[i]], 2), list, "\n")
        for (j = 1; j <= of; ++j) { row = list[j]; print row FS value[row] FS estimate[row] FS bar[row] FS verdict[row] }
      }
    }' "$state/rows"
}
bar_of() { rows "$part" "$1" | cut -f 5; }                                   # check
outcome_of() { rows "$part" "$1" | awk -F'\t' '{ print $6 ":" $3 }'; }  # check: verdict:value

table() {  # [part]: its rows, or all
  {
    [ -n "${1:-}" ] || printf 'part\tcheck\tvalue\testimate\tbar\tverdict\n'
    rows "${1:-}"
  } | awk -F'\t' '{ printf "%-9s %-34s %-72s %-18s %-18s %s\n", $1, $2, $3, $4, $5, $6 }'
}

# step CHECK ESTIMATE BAR COMMAND...: one measurement. The command gives the row its result, and can add others. `repairs` runs it again
# only if it did not end. A part consists of steps and plans: it is also called once to list its rows.
step() {
  local code outcome none='began and did not end'
  check=$1 log=
  if [ -n "$planning" ]; then plan "${@:1:3}"; return; fi
  case $(outcome_of "$1") in unfinished:* | -:'not measured'*) ;; *) return ;; esac
  result "$none" unfinished
  "${@:4}"
  code=$? outcome=$(outcome_of "$1")
  if [[ $outcome = *":$none"* ]]; then
    case $code in
      3) result 'no PyTorch that sees a GPU' - ;;
      124 | 137) result 'stopped at its limit' unfinished ;;
      *) result "failed, exit code $code: $(last_line)" FAIL ;;
    esac
    outcome=$(outcome_of "$1")
  fi
  case $outcome in
    FAIL:* | unfinished:*) { echo "== $part: $1: ${outcome#*:}"; [ -z "$log" ] || tail -n 20 "$log" | cut -c1-300; } >> "$state/failures" ;;
  esac
}
was_stopped() { [[ $1 = 124 || $1 = 137 ]]; }  # exit code
last_line() { grep -as . "$log" | tail -n 1 | cut -c1-150; }  # the last log's

# ---- Running programs. Times are in milliseconds; `second` is a second of the lists here.
now() { echo $((${EPOCHREALTIME/./} / 1000)); }
seconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }  # milliseconds
finish=$(($(now) + 100000000)) second=1000

limited() {  # seconds command...: at most that long, and not past the end of the part; 124 or 137: it was stopped
  local most=$(($1 * second)) left=$((finish - 5 * second / 2 - $(now)))  # time to write its row is left
  [ "$most" -lt "$left" ] || most=$left
  [ "$most" -gt 0 ] || return 124
  timeout --foreground --kill-after="$(seconds "$second")" "$(seconds "$most")" "${@:2}"
}

ours() {  # seconds log program option...: one of our programs, with cuBLASLt. The output goes into the log.
  log=$logs/$2.txt
  LD_LIBRARY_PATH=$libraries limited "$1" "${wrapper[@]}" "$bin/ricci-$3" "${@:4}" > "$log" 2>&1
}
wrapper=()  # a program that runs ours

torch() {  # seconds log script option...: a script of tests/bench/torch. 3: PyTorch or a GPU is missing
  log=$logs/$2.txt
  : > "$log"
  has_torch || return
  limited "$1" "$python" "tests/bench/torch/$3.py" "${@:4}" > "$log" 2>&1
}
has_torch() {  # waits for find_torch
  while kill -0 "$finding" 2> /dev/null; do sleep 0.1; done
  [ -e "$state/torch" ] || return 3
}
find_torch() {
  timeout "$(seconds $((90 * second)))" "$python" -c 'import torch; torch.cuda.init(); print(torch.__version__)' > "$state/torch.new" 2> "$logs/torch.txt" &&
    mv "$state/torch.new" "$state/torch"
}

measures() { awk '$1 == "measure" && NF == 4 { print $2 "\t" $3 "\t" $4 }' "$logs/$1.txt" 2> /dev/null; }  # log: name, value, unit
value_of() { measures "$1" | awk -F'\t' -v name="$2" '$1 == name { print $2 }'; }                         # log measure

# ---- The programs
sources() {  # a checksum of everything that is compiled
  find CMakeLists.txt core cuda autograd ops models data apps tests -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \
    -o -name '*.cmake' -o -name CMakeLists.txt \) -print0 2> /dev/null | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16
}
toolkit_major() { nvcc --version 2> /dev/null | sed -nE 's/.*release ([0-9]+)\..*/\1/p' | grep .; }

find_programs() {  # sets bin, heading, libraries and, for programs of other sources, mark
  local packed=$build/programs.tar.gz here theirs commit major
  bin=$build mark=
  if [ -e "$packed" ]; then
    bin=$build/programs
    [ "$bin/unpacked" -nt "$packed" ] || { rm -rf "$bin" && mkdir "$bin" && tar -xf "$packed" -C "$bin" && touch "$bin/unpacked"; }
  fi
  here=$(sources) theirs=$(cat "$bin/sources" 2> /dev/null)
  commit=$(cat "$bin/commit" 2> /dev/null || git describe --always --dirty 2> /dev/null)
  heading="sources and programs of ${commit:-no commit}, checksum $here"
  if [ "${theirs:-$here}" != "$here" ]; then heading="sources with checksum $here, programs of $commit, checksum $theirs" mark=" (of $commit)"; fi
  major=$(cat "$bin/cuda_major" 2> /dev/null || toolkit_major || echo 13)
  libraries=$(tests/gpu/find_cublas.sh "$major") || export libraries=none RICCI_WITHOUT_CUBLAS=1
}

# shellcheck source=/dev/null
for file in tests/gpu/{build,checks,speed,papers}.sh; do [ ! -e "$file" ] || . "$file"; done

# ---- Parts
running=() # process groups
stop() {  # process group
  kill -TERM -- "-$1" 2> /dev/null && sleep 0.2
  kill -KILL -- "-$1" 2> /dev/null
}
background() { set -m; "$@" < /dev/null & pid=$!; running+=("$pid"); set +m; }  # command...: in a new process group, with id pid
trap 'for pid in "${running[@]}"; do stop "$pid"; done' EXIT
trap 'keep_results; exit 143' TERM INT

wait_until() {  # milliseconds pid: 1 if the process has not ended by then
  while kill -0 "$2" 2> /dev/null; do
    [ "$(now)" -lt "$1" ] || return 1
    sleep 0.05
  done
}

run_part() {  # part end, in milliseconds
  local pid
  part=$1 finish=$2
  echo "-- $part, $(((finish - $(now)) / 1000)) s"
  background "part_$part" >> "$logs/$part.log" 2>&1
  wait_until "$finish" "$pid" || echo "-- $part was stopped"
  stop "$pid"  # and what it left running
  wait "$pid" 2> /dev/null
  table "$part"
  keep_results
}

keep_results() {
  { cat "$state"/heading.*; table; } > "$OUT/table.txt"
  [ ! -s "$state/failures" ] || tail -c 1000000 "$state/failures" > "$OUT/failures.txt"
  (cd "$build" && find state logs -type f -size -2000k ! -name '*.safetensors' -print0 | tar -cf "$OUT/results.tar" --null -T -)
}

keep_inductor() {  # the kernels compiled by PyTorch, if they fit with the other results
  local archive=$OUT/inductor.tar.gz
  [ ! -d "$build/inductor" ] || tar -czf "$archive" -C "$build" inductor
  [ ! -e "$archive" ] || [ "$(stat -c %s "$archive")" -lt 14000000 ] || rm "$archive"
}

read_back() {
  [ -e "$state/rows" ] || [ ! -e "$build/results.tar" ] || tar -xf "$build/results.tar" -C "$build"
  [ -e "$build/inductor" ] || [ ! -e "$build/inductor.tar.gz" ] || tar -xf "$build/inductor.tar.gz" -C "$build"
}

plan_parts() {  # part...: their rows before anything is measured
  forget "$@"
  for part in "$@"; do "part_$part"; done
}
forget() { sed -i -E "/^($(tr ' ' '|' <<< "$*"))\t/d" "$state/rows"; }  # part...

unfinished() { rows "$1" | grep -E $'\tunfinished$|\tnot measured\t' > /dev/null; }  # part

# A part begins when the one before it has ended, and ends as planned: it can use all the time that others left.
run_word() {  # word
  local each end warm='' last
  for each in ${parts_of[$1]}; do
    end=$((${end:-$begin} + ${each#*:} * second))
    case $1:$each in
      first:test:*) finish=$((end + second * 20)) && background warm_up && warm=$pid ;;
      first:attention:*) wait_until $((end - ${each#*:} * second)) "$warm"; stop "$warm" ;;
    esac
    run_part "${each%:*}" "$end"
  done
  last=$((begin + ${seconds_of[$1]} * second))
  [ "$1" = repairs ] || return
  for each in ${parts_of[first]}; do
    if unfinished "${each%:*}"; then
      end=$(($(now) + ${each#*:} * second))
      run_part "${each%:*}" $((end < last ? end : last))
    fi
  done
}

word=${1:-}
case $word in
  pack | rehearse) "${word}_programs"; exit ;;
  first | repairs | papers) ;;
  -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
  *) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
esac
begin=$(now)
second=$(awk -v total="${RICCI_TOTAL_SECONDS:-${seconds_of[$word]}}" -v most="${seconds_of[$word]}" -v clock="${RICCI_CLOCK:-1}" \
  'BEGIN { printf "%d", 1000 * clock * total / most }')
read_back
touch "$state/rows"
rm -f "$state/torch"
if [ "$word" = first ]; then
  rm -f "$state"/{fail*,heading.first,heading.repairs} "$logs"/*
  forget memcheck kernels
fi
background find_torch
finding=$pid
find_programs
card=$(timeout 20 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2> /dev/null | head -n 1)
heading="$word on ${card:-no GPU}, $heading"
echo "$heading"
if [ "$heading" != "$(cat "$state/heading.$word" 2> /dev/null)" ]; then  # other programs or a different machine: start again
  echo "$heading" > "$state/heading.$word"
  planning='not measured'
  [ -n "$card" ] || planning='no GPU'
  read -ra names <<< "$(sed -E "s/:[0-9]+//g" <<< "${parts_of[$word]}")"
  plan_parts "${names[@]}"
  planning=
fi
if [ -n "$card" ]; then run_word "$word"; else table; fi
[ "$word" = papers ] || keep_inductor
keep_results
! rows | grep -E $'\t(FAIL|unfinished)$|\t(not measured|no GPU)\t' > /dev/null

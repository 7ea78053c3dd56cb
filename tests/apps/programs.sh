# For scripts that test the programs: a scratch folder, a small run file, and expectations of calls.
#   . programs.sh build-folder
set -u
export LC_ALL=C
build=$(cd "${1:?build folder}" && pwd) || exit 1
folder=$(mktemp -d) || exit 1
background=
# A copy of this shell that a signal ends before exec also runs the trap. It must keep the folder.
trap '[ "$BASHPID" != $$ ] || { [ -z "$background" ] || kill -KILL "$background"; rm -rf "$folder"; }' EXIT
cd "$folder" || exit 1
export XDG_CACHE_HOME=$folder/cache RICCI_DATA=$folder/data
failures=0

# verdict NAME FAULT: an empty fault is none.
verdict() {
  if [ -z "$2" ]; then echo "ok      $1" && return; fi
  echo "FAILED  $1: $2"
  sed 's/^/          /' out err
  failures=$((failures + 1))
}

# instead COMMAND: a readable fault, the output of the command, even if empty. shown FILE ...: the files, even missing ones.
instead() {
  echo 'there is:'
  "$@"
}
shown() { instead cat "$@"; }

# needs WHAT: ends a script that cannot run here. ctest counts it as skipped, unless a test has failed before.
needs() {
  [ $failures = 0 ] || exit 1
  echo "skipped: needs $1"
  exit 77
}

# find_launcher: the array `launcher` starts programs of this build as multiple processes. Two MPIs can be installed, and the programs need
# the mpirun of their MPI.
find_launcher() {
  local name
  case $("$build/ricci-train" --version) in *'Open MPI'*) name=openmpi ;; *MPICH*) name=mpich ;; *) needs MPI ;; esac
  launcher=("$(command -v mpirun.$name || command -v mpirun)") || needs mpirun
  [ $name = mpich ] || launcher+=(--oversubscribe)
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

# True in the long test run (tests/run.sh --all): a script can then try all cases instead of some. few_or_all FEW ALL: a number.
everything() { [ -n "${RICCI_TEST_ALL:-}" ]; }
few_or_all() { if everything; then echo "$2"; else echo "$1"; fi; }

# narrower ISA: that value of RICCI_ISA, or the only one of ARM.
narrower() { if "$build/ricci-train" --version | grep -q '^CPU  *neon$'; then echo neon; else echo "$1"; fi; }

# Limits of every program call: seconds of processor time, ten times that for waiting, and mebibytes of memory. as_user: a command before
# it.
seconds=60 mebibytes=1024 as_user=()
[ -z "${QEMU_LD_PREFIX:-}" ] || seconds=1200 mebibytes=16384

# run PROGRAM ARGUMENT ...: stdout to the file out, stderr to err; returns the exit code of ricci-PROGRAM.
run() { "${as_user[@]}" "$build/ricci-bounded" $seconds $mebibytes "$build/ricci-$1" "${@:2}" >out 2>err </dev/null; }

# start PROGRAM ARGUMENT ...: the same in the background, as process $background; to the files background.out and background.err.
# They are empty before it starts: the words of an earlier program are not its own.
start() {
  : >background.out >background.err
  "$build/ricci-$1" "${@:2}" >background.out 2>background.err </dev/null &
  background=$!
}
# ended: the exit code of $background. It is killed (137) if it is still there after ten minutes: it hangs.
ended() {
  local code
  await '! kill -0 "$background" 2>/dev/null' || kill -KILL "$background"
  wait "$background" 2>/dev/null
  code=$?
  background=
  return $code
}
# await CONDITION: waits until the shell command is true. The limit of ten minutes is there for a program that hangs: a busy machine does
# not reach it.
await() {
  local end=$((SECONDS + 600))
  until eval "$1"; do
    [ $SECONDS -lt $end ] || return
    sleep 0.02
  done
}

leftovers() { find . -name '*.tmp-*' -o -path './runs/bad/model.safetensors' -o -name 'probe.safetensors'; }

# refuse NAME CODE PATTERN PROGRAM ARGUMENT ...: the exit code, and the extended regular expression of the line.
refuse() {
  local name=$1 code=$2 pattern=$3 program=$4 got fault=
  shift 3
  rm -rf runs/bad
  run "$@"
  got=$?
  if [ "$got" != "$code" ]; then
    fault="exit code $got, expected $code"
  elif [ "$(grep -c '' err)" != 1 ]; then
    fault='expected one line on stderr'
  elif [ "$(wc -c <err)" -gt 250 ]; then
    fault='the line on stderr has more than 250 bytes'
  elif ! grep -qE "^ricci[- ]$program: .*($pattern)" err; then
    fault="stderr does not match $pattern"
  elif [ -n "$(leftovers)" ]; then
    fault="left behind: $(leftovers)"
  fi
  verdict "$name" "$fault"
}

# accept NAME PROGRAM ARGUMENT ...: exit code 0 and nothing on stderr.
accept() {
  local fault=
  run "${@:2}" || fault="exit code $?"
  [ ! -s err ] || fault+=' expected nothing on stderr'
  verdict "$1" "$fault"
}

# tree FOLDER: its files with checksums, without differences between two runs.
tree() {
  (cd "$1" && find . -type f ! -name metrics.jsonl ! -name 'events.out.*' -exec sha1sum {} + | sort -k 2
    for file in runs/*/metrics.jsonl; do [ ! -e "$file" ] || echo "$(sed -E 's/,"tokens_per_s.*//' "$file" | sha1sum | cut -c -40)  $file"; done)
}

# header FILE, tensors FILE: the two parts of a safetensors file. trained FILE KEY: the value in training, given or not.
header() { head -c $((8 + $(od -An -tu8 -N8 "$1"))) "$1" | tail -c +9; }
tensors() { tail -c +$((9 + $(od -An -tu8 -N8 "$1"))) "$1"; }
trained() { header "$1" | grep -oP "(\\\\n|\") *\Q${2#model.}\E: \K(\\\\\"|[^\\\\])*" | head -1 | tr -d '\\'; }

for number in {1..60}; do echo "the quick brown fox jumps over the lazy dog $number"; done >text.txt
cat >tiny.yaml <<'END'
name: bad
model: {d: 16, layers: 1, heads: 2, ctx: 16}
data: text.txt
steps: 2
batch: 2
threads: 1
eval_every: 0
log_every: 1
sample: {tokens: 0}
END

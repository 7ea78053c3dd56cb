#!/usr/bin/env bash
# Ranks as real processes, started by mpirun: what they exchange, and how each failure ends: one line, an exit code, nobody left over.
#   ranks.sh build-folder
set -u
build=$(cd "$1" && pwd)
program=$build/ricci-several
ldd "$program" | grep -q libmpi && command -v mpirun >/dev/null || { echo 'skipped: needs a build with MPI, and mpirun'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
ln -s "$program" ricci-several  # so that processes left over are told from those of another test
program=$work/ricci-several
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
spread=()
mpirun --version | grep -q 'Open MPI' && spread=(--oversubscribe)
failures=0

verdict() {  # NAME FAULTS
  if [ -z "$2" ]; then echo "ok      $1"; return; fi
  echo "FAILED  $1: $2"
  failures=$((failures + 1))
}

# Runs a case on N ranks; sets code, seconds; the lines that are ours are in `lines`.
launch() {  # N CASE
  local begun=$EPOCHREALTIME
  timeout -k 5 60 mpirun "${spread[@]}" -n "$1" "$program" "$2" >out 2>err
  code=$?
  seconds=$(awk "BEGIN { print $EPOCHREALTIME - $begun }")
  grep '^ricci-several: ' err >lines
  for _ in $(seq 20); do pgrep -f "$program" >left || break; sleep 0.1; done
}
passes() {  # NAME N CASE
  launch "$2" "$3"
  verdict "$1" "$([ $code = 0 ] && [ ! -s lines ] && [ ! -s left ] && grep -qE "^$2 ranks on 1 machine, (Open MPI|MPICH) [0-9]" out || cat out err left)"
}
ends() {  # NAME N CASE LINE [most seconds]
  launch "$2" "$3"
  verdict "$1" "$([ $code != 0 ] && [ $code != 124 ] && [ ! -s left ] && [ "$(wc -l <lines)" = 1 ] && grep -qE "^ricci-several: $4\$" lines ||
    echo "exit code $code, $(cat out err left)")"
  [ -z "${5:-}" ] || verdict "$1, within $5 s" "$(awk "BEGIN { exit !($seconds > $5) }" && echo "$seconds s")"
}

for n in 2 3 4; do passes "what $n ranks exchange" $n exchange; done
for order in forward reverse random; do
  for lazy in 0 1; do
    export RICCI_EMULATOR_ORDER=$order RICCI_EMULATOR_LAZY=$lazy
    passes "what 3 ranks exchange on cuda_emulated, $order, lazy $lazy" 3 emulated
  done
done
unset RICCI_EMULATOR_ORDER RICCI_EMULATOR_LAZY
ends 'a wait that was forgotten' 2 forgotten 'a sum that was not waited for: expected 2, got 1'
ends 'an error on one rank' 3 fails 'rank 1 on [^ ]+: step 812: no space left'
ends 'an error on all ranks is told once' 4 all_fail 'an error that all ranks meet'
ends 'a stopped rank' 3 stops 'rank 2 on [^ ]+ does not answer: the other 2 have waited for it for 1 s \(rank_timeout\) in step 812' 11
ends 'rank 0 stopped' 2 first_stops 'rank 0 on [^ ]+ does not answer: the other has waited for it for 1 s \(rank_timeout\)' 11
ends 'all ranks wait' 3 all_wait 'all ranks wait, the longest [12] s: rank 1 on [^ ]+ in step 811, the others in step 812'
passes 'a rank that is late, but comes' 3 late
passes 'a patient wait' 3 patient
launch 3 exits
verdict 'a rank that leaves without a word' "$([ $code != 124 ] && [ ! -s left ] || cat out err left)"

# A signal to mpirun: all leave after the same step. A killed rank: the others end.
begin_asked() {
  : >out
  mpirun "${spread[@]}" -n 3 "$program" asked >out 2>err &
  launched=$!
  for _ in $(seq 100); do grep -q 'five steps' out && break; sleep 0.1; done
}
begin_asked
kill -USR1 $launched
wait $launched
code=$?
verdict 'SIGUSR1 to mpirun' "$([ $code = 0 ] && grep -q '^3 ranks' out || echo "exit code $code, $(cat out err)")"
begin_asked
kill -KILL "$(pgrep -f "^$program asked" | tail -1)" || failures=$((failures + 1))
begun=$EPOCHREALTIME
wait $launched
code=$?
for _ in $(seq 20); do pgrep -f "$program" >left || break; sleep 0.1; done
verdict 'a killed rank' "$([ $code != 0 ] && [ ! -s left ] || echo "exit code $code, $(cat out err left)")"
verdict 'a killed rank, within 5 s' "$(awk "BEGIN { exit !($EPOCHREALTIME - $begun > 5) }" && echo "$(cat out err)")"

# The launcher and MPI do not agree; programs that run as one process.
begin=(env SLURM_STEP_NUM_TASKS=16 SLURM_PROCID=3)
"${begin[@]}" "$program" exchange >out 2>err
code=$?
verdict 'a launcher that MPI does not know' "$([ $code = 1 ] && grep -qxF \
  'ricci-several: srun started 16 processes, but MPI sees 1; use srun --mpi=pmix (srun --mpi=list), or mpirun inside the job' err || cat out err)"
for one in eval compare bench; do
  mpirun "${spread[@]}" -n 4 "$build/ricci-$one" runs/none >out 2>err
  code=$?
  verdict "ricci-$one" "$([ $code != 0 ] && [ "$(grep -cxE "ricci-$one: runs as one process, but (mpirun|mpiexec) started 4" err)" -ge 1 ] || cat out err)"
done
env SLURM_STEP_NUM_TASKS=16 SLURM_PROCID=3 "$build/ricci-without-mpi" exchange >out 2>err
code=$?
verdict 'a build without MPI' "$([ $code = 1 ] && grep -qxF \
  'ricci-without-mpi: started as process 4 of 16 by srun, but this program was built without MPI; install libopenmpi-dev and build again' err || cat out err)"
exit $((failures > 0))

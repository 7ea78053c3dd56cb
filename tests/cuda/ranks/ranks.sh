#!/usr/bin/env bash
# Ranks as real processes, started by mpirun: sums, messages, training steps, and the end of each failure: one line, an exit code, no
# process left over.
#   ranks.sh build-folder
. "$(dirname "$0")/../../apps/programs.sh" "$@"
find_launcher
ln -s "$build/ricci-several" .  # distinguishes processes left over from those of a different test
program=$folder/ricci-several
mpirun() { timeout -k 5 600 "${launcher[@]}" "$@"; }

# begin N CASE: starts it on N ranks. launch N CASE: its exit code in code, its output in out and err, and our lines in lines.
begin() {
  : >"begun.$2"
  { mpirun -n "$1" "$program" "$2" >"out.$2" 2>"err.$2"; echo $? >"code.$2"; } &
}
launch() {
  [ -e "begun.$2" ] || begin "$@"
  await "[ -s code.$2 ]"
  code=$(<"code.$2")
  mv "out.$2" out
  mv "err.$2" err
  rm "begun.$2" "code.$2"
  grep '^ricci-several: ' err >lines
}
nobody_left() { await "! pgrep -f '^$program $1' >/dev/null"; }
passes() {  # NAME N CASE
  launch "$2" "$3"
  verdict "$1" "$([ $code = 0 ] && [ ! -s lines ] && nobody_left "$3" && grep -qE "^$2 ranks on 1 machine, (Open MPI|MPICH) [0-9]" out || echo "exit code $code")"
}
ends() {  # NAME N CASE LINE
  launch "$2" "$3"
  verdict "$1" "$([ $code != 0 ] && [ $code != 124 ] && nobody_left "$3" && [ "$(wc -l <lines)" = 1 ] && grep -qE "^ricci-several: $4\$" lines || echo "exit code $code")"
}

# These wait for seconds, so they run next to the others.
begin 3 stops
begin 2 first_stops
begin 4 two_stop
begin 3 teller_stops
begin 3 late
for n in $(few_or_all 3 '2 3 4'); do passes "sums and messages of $n ranks" $n exchange; done
ends 'an error on one rank' 3 fails 'rank 1 on [^ ]+: step 812: no space left'
ends 'an error on all ranks is told once' 4 all_fail 'an error that all ranks meet'
! everything || passes 'a patient wait' 3 patient
launch 3 exits
verdict 'a rank that leaves without a word' "$([ $code != 124 ] && nobody_left exits || echo "exit code $code")"

# A signal to mpirun: all leave after the same step. A killed rank: the others end.
begin_asked() {
  : >out
  "${launcher[@]}" -n 3 "$program" asked >out 2>err &
  background=$!
  await "grep -q 'five steps' out || ! kill -0 $background 2>/dev/null"
}
begin_asked
kill -USR1 $background
ended
code=$?
verdict 'SIGUSR1 to mpirun' "$([ $code = 0 ] && grep -q '^3 ranks' out || echo "exit code $code")"
begin_asked
kill -KILL "$(pgrep -f "^$program asked" | tail -1)" || failures=$((failures + 1))
ended
code=$?
verdict 'a killed rank' "$([ $code != 0 ] && nobody_left asked || echo "exit code $code")"

# ---- Steps of a small model: the same bits on all ranks and at each repetition, and the losses of one process up to rounding

# The losses in `out` that differ from those in `one` by more than 1e-5 of them.
far() { paste <(grep ^loss one) <(grep ^loss out) | awk '{ d = $6 / $2 - 1; if (d < 0) d = -d; if (!(d <= 1e-5)) print }'; }
for device in cpu cuda_emulated; do
  for dtype in $(few_or_all "$([ $device = cpu ] && echo f32 || echo bf16)" 'f32 bf16'); do
    "$build/ricci-several-steps" $device $dtype >one 2>err
    verdict "steps of one process, $device, $dtype" "$([ "$(grep -c '^loss' one)" = 5 ] || echo no)"
    for ranks in $(few_or_all "$([ $device = cpu ] && echo 3 || echo 2)" '2 3 4'); do
      for repetition in 1 2; do
        OMP_NUM_THREADS=$repetition mpirun -n $ranks "$build/ricci-several-steps" $device $dtype >out 2>err
        code=$?
        verdict "steps of $ranks processes, $device, $dtype" "$([ $code = 0 ] && [ "$(grep -c '^loss' out)" = 5 ] || echo "exit code $code"
          far
          [ $repetition = 1 ] || diff before out)"
        mv out before
      done
    done
  done
done

# ---- The launcher and MPI disagree; programs that run as one process
env SLURM_STEP_NUM_TASKS=16 SLURM_PROCID=3 "$program" exchange >out 2>err
code=$?
verdict 'a launcher that MPI does not know' "$([ $code = 1 ] && grep -qxF \
  'ricci-several: srun started 16 processes, but MPI sees 1; use srun --mpi=pmix (srun --mpi=list), or mpirun inside the job' err || echo "exit code $code")"
for one in eval compare bench; do
  mpirun -n 4 "$build/ricci-$one" runs/none >out 2>err
  code=$?
  verdict "ricci-$one" "$([ $code != 0 ] && [ "$(grep -cxE "ricci $one: runs as one process, but (mpirun|mpiexec) started 4" err)" -ge 1 ] || echo "exit code $code")"
done
env SLURM_STEP_NUM_TASKS=16 SLURM_PROCID=3 "$build/ricci-without-mpi" exchange >out 2>err
code=$?
verdict 'a build without MPI' "$([ $code = 1 ] && grep -qxF \
  'ricci-without-mpi: started as process 4 of 16 by srun, but this program was built without MPI; install libopenmpi-dev and build again' err || echo "exit code $code")"
ends 'a stopped rank' 3 stops 'rank 2 on [^ ]+ does not answer: the other 2 have waited for it for 1 s \(rank_timeout\) in step 812'
ends 'rank 0 stopped' 2 first_stops 'rank 0 on [^ ]+ does not answer: the other has waited for it for 1 s \(rank_timeout\)'
ends 'two stopped ranks' 4 two_stop 'rank 1 on [^ ]+, rank 2 on [^ ]+ do not answer: the other 2 have waited for them for 1 s \(rank_timeout\)'
ends 'the rank that was to tell is stopped' 3 teller_stops 'rank 2 on [^ ]+ does not answer: the other 2 have waited for it for 1 s \(rank_timeout\)'
passes 'a rank that is late, but comes' 3 late
exit $((failures > 0))

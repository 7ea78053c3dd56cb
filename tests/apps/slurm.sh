#!/usr/bin/env bash
# configs/slurm.sh with stubs of mpirun and scontrol: it returns the exit code of training, and the job returns to the queue after a failure
# and after the signal at the end of its time.
#   slurm.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"
mkdir stubs
printf '#!/bin/sh\necho "$@" >>queue\n' >stubs/scontrol
# trains_as SCRIPT: a stub of mpirun.
trains_as() { printf '#!/bin/bash\n%s\n' "$1" >stubs/mpirun && chmod +x stubs/*; }
# job NAME CODE QUEUE [RESTARTS]: the exit code, and the calls of scontrol.
job() {
  local got
  rm -f queue
  PATH=$PWD/stubs:$PATH SLURM_JOB_ID=5 SLURM_RESTART_COUNT=${4:-0} bash "$root/apps/configs/slurm.sh" >out 2>err
  got=$?
  is "$1" "$2 $3" echo "$got $(cat queue 2>/dev/null)"
}
trains_as 'exit 0'
job 'a training that ends' 0 ''
trains_as 'exit 7'
job 'a failure is tried again' 7 'requeue 5' 19
job 'and after 20 times it is one' 7 '' 20
# Slurm's signal reaches the script, and the script forwards it. Training ends with the code of an interruption, or with 0 after its last
# step.
waits='trap "sleep 0.3; exit CODE" USR1; sleep 0.5; kill -USR1 $PPID; for i in {1..100}; do sleep 0.1; done; exit 9'
trains_as "${waits/CODE/138}"
job 'the end of its time' 138 'requeue 5' 20
trains_as "${waits/CODE/0}"
job 'a last step at the end of its time' 0 ''
# The codes of ricci train itself
{ echo '#!/bin/bash'; echo "exec '$build/ricci-train' tiny.yaml name=job steps=1000000 >job.out 2>&1"; } >stubs/mpirun
PATH=$PWD/stubs:$PATH SLURM_JOB_ID=5 SLURM_RESTART_COUNT=20 bash "$root/apps/configs/slurm.sh" >out 2>err & background=$!
await '[ -s runs/job/metrics.jsonl ]'
rm -f queue
kill -USR1 $background
ended
is 'a training that saves at the end of its time' '138 requeue 5' eval "echo $? \$(cat queue)"
shows 'saves' '^interrupted, saved after ' job.out
finish

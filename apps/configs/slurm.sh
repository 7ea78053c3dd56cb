#!/bin/bash
# Trains on 8 machines with 8 GPUs each under Slurm: sbatch slurm.sh. Five minutes before its time is over, the job saves and returns to the
# queue. It also returns after a failure, at most 20 times. With fewer machines, the script continues with a smaller --nodes. The exit code
# is the run's, and 0 only after the last step, so jobs with --dependency=afterok wait for a finished model.
#SBATCH --job-name=gpt2 --nodes=8 --ntasks-per-node=8 --gpus-per-node=8 --cpus-per-task=12 --time=24:00:00
#SBATCH --requeue --open-mode=append --signal=B:USR1@300
export OMPI_MCA_btl_tcp_if_include=ib0 NCCL_SOCKET_IFNAME=ib0 # the network, if there are multiple
mpirun --map-by ppr:8:node:pe=12 build/ricci train gpt2.yaml device=cuda accumulation=64 &
run=$!
trap 'asked=1; kill -USR1 $run' USR1
wait $run
code=$?
if [ -n "$asked" ]; then # the signal ended the first wait
  wait $run
  code=$?
fi
if [ $code -ne 0 ] && { [ -n "$asked" ] || [ "${SLURM_RESTART_COUNT:-0}" -lt 20 ]; }; then scontrol requeue "$SLURM_JOB_ID"; fi
exit $code

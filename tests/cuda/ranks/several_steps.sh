#!/usr/bin/env bash
# Steps on 2, 3 and 4 real processes have the losses, norms and values of one, to the bit; on cuda_emulated in all orders of its streams.
#   several_steps.sh build-folder
set -u
build=$(cd "$1" && pwd)
program=$build/ricci-several-steps
ldd "$program" | grep -q libmpi && command -v mpirun >/dev/null || { echo 'skipped: needs a build with MPI, and mpirun'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
spread=()
mpirun --version | grep -q 'Open MPI' && spread=(--oversubscribe)
failures=0

compare() {  # NAME RANKS DEVICE DTYPE
  local faults
  timeout -k 5 120 mpirun "${spread[@]}" -n "$2" "$program" "$3" "$4" >several 2>err
  code=$?
  faults=$([ $code = 0 ] && diff one several || { echo "exit code $code"; cat err; })
  if [ -z "$faults" ]; then echo "ok      $1"; return; fi
  echo "FAILED  $1: $faults"
  failures=$((failures + 1))
}

for device in cpu cuda_emulated; do
  for dtype in f32 bf16; do
    "$program" $device $dtype >one || failures=$((failures + 1))
    [ "$(grep -c '^loss' one)" = 3 ] || failures=$((failures + 1))
    for ranks in 2 3 4; do compare "$ranks processes, $device, $dtype" $ranks $device $dtype; done
  done
done
"$program" cuda_emulated f32 >one
for order in forward reverse random; do
  for lazy in 0 1; do
    export RICCI_EMULATOR_ORDER=$order RICCI_EMULATOR_LAZY=$lazy
    compare "3 processes, $order, lazy $lazy" 3 cuda_emulated f32
  done
done
exit $((failures > 0))

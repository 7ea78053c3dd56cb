#!/usr/bin/env bash
# What RICCI_TRACE=1 counts: the steps of training but the first two of a process, which touch memory for the first time.
#   trace.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"

# counted NAME CALLS ARGUMENT ...: the op that ends a step, and one within it, were called as often.
counted() {
  local fault=
  RICCI_TRACE=1 run train tiny.yaml "${@:3}" || fault="exit code $?"
  for op in optimizer gradient_norm 'attention backward'; do
    [ "$(sed -nE "s/^$op +([0-9]+) .*/\\1/p" err)" = "$2" ] || fault+=" $op: not $2 calls"
  done
  verdict "$1" "$fault"
}
counted 'five steps: three are counted' 3 name=five steps=5
counted 'three steps: one is counted' 1 name=three steps=3
counted 'two steps: both' 2 name=two steps=2
counted 'one step' 1 name=one steps=1
counted 'a process that goes on forgets its own first two' 4 name=five steps=11
counted 'five steps of which the third is recorded for a device: the recording counts' 1 name=recorded steps=5 device=cuda_emulated cuda_graph=true eval_batches=1
verdict 'the peak is that of the device' "$(grep -qE '^measured peak [0-9]+ GFLOP/s f32, memory [0-9.]+ GB/s, cuda_emulated$' err || instead head -3 err)"
accept 'without RICCI_TRACE nothing is said' train tiny.yaml name=quiet steps=5

echo "$failures failed"
exit $((failures > 0))

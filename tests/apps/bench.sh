#!/usr/bin/env bash
# ricci bench: tables, JSON, drawings and messages (tests/apps/lab/benchmark compares numbers with a calculation by hand). The ladders of
# ops. RICCI_TRACE=1 counts training steps, except the first two of a process.
#   bench.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"
command -v xmllint >/dev/null || needs 'xmllint (Debian: libxml2-utils)'

small=(--width 8 --heads 2 --layers 1 --rounds 2 --threads 1)
accept 'all mixers' bench "${small[@]}" --lengths 4,8 --tokens 8
narrow 'all mixers'
is 'a row for each length and mixer' $' 9 4 10\n 9 8 10' eval "awk 'NR > 2 && NF == 10 { print \$2, NF }' out | sort | uniq -c | tr -s ' '"
accept 'a drawing, on an emulated GPU' bench metric dispatcher "${small[@]}" --lengths 2,4 --tokens 4 --device cuda_emulated --dtype bf16 -o plot.svg
is 'no memory of the process on a GPU' - eval "awk '/^(metric|dispatcher) / { print \$9 }' out | sort -u"
verdict 'the drawing is XML' "$(xmllint --noout plot.svg 2>&1)"
refuse 'tokens and sequences' 2 '--sequences' bench --tokens 64 --sequences 2
refuse 'an unknown mixer' 1 "no mixer is called 'spd', the nearest is 'sdp'; the mixers are sdp, .*dispatcher" bench spd
refuse 'a length beyond 64 bits' 2 '--lengths' bench --lengths 99999999999999999999
refuse 'a width beyond any memory' 1 'is larger than any memory' bench --width 9000000000000000000 --heads 1
refuse 'an unknown dtype' 1 'f16' bench --dtype f16
refuse 'a drawing of an unknown kind' 1 'plot\.pdf: expected a name that ends in \.svg or \.html' bench "${small[@]}" -o plot.pdf

# ---- The ladders of ops
# unlisted: the rungs in the output that no header's ladder lists with its lines.
unlisted() {
  grep -oE '^(ops|cuda)/[^ ]+' out | sort -u | while read -r file; do
    cat "$root"/ops/{attention/attention,shift_and_sum/shift_and_sum,rows/layer_norm}.h "$root/cuda/gemm/gemm.h" | grep -qE "^//   $file +[0-9]+ " || echo "$file"
  done
}
rungs=(bench-rungs --width 16 --heads 2 --rounds 1 --threads 1)
accept 'the ladders of the ops' "${rungs[@]}" --tokens 40
narrow 'the ladders of the ops'
verdict 'their rungs are in the headers' "$(unlisted)"
# A rung: file, dtype, ms, gain (not of the first one), floor, ms in floors.
wrong_rungs() {
  awk 'function differs(a, b) { return a > 1.2 * b || b > 1.2 * a }
    / times \[/ { before = 0 }
    /^(ops|cuda)/ && (differs($3, $(NF - 1) * $NF) || (before ? NF != 6 || differs(before, $3 * $4) : NF != 5)) { print }
    /^(ops|cuda)/ { before = $3 }' out
}
accept 'a ladder' bench-rungs gemm --tokens 256 --width 128 --rounds 1 --threads 1
is 'has two rungs' 2 grep -cE '^(ops|cuda)/' out
verdict 'whose gains and floors are those of the times' "$(wrong_rungs)"
accept 'ladders on an emulated GPU' "${rungs[@]}" --tokens 8 --device cuda_emulated
is 'their rungs are kernels' 'cuda/gemm/tiled.cu ops/attention/gpu/forward.cu ops/rows/layer_norm.cu ops/rows/layer_norm_pieces.cu ops/shift_and_sum/gpu/forward.cu' \
  eval "grep -oE '^(ops|cuda)/[^ ]+\.cu' out | sort -u | xargs"
verdict 'the headers list them' "$(unlisted)"
accept 'one ladder' bench-rungs shift_and_sum --width 8 --heads 1 --tokens 4 --rounds 1
is 'its rungs, from the definition on' 'ops/shift_and_sum/definition.cpp f32 ops/first_rungs.cpp f64 ops/shift_and_sum/cpu.cpp f32' \
  eval "awk '/^ops/ { print \$1, \$2 }' out | xargs"
refuse 'an unknown ladder' 1 "ladder: expected one of attention, gemm, .*, got 'atention'" bench-rungs atention

# ---- RICCI_TRACE
# counted NAME CALLS ARGUMENT ...: this number of calls, of the op that ends a step and of one within it.
counted() {
  RICCI_TRACE=1 run train tiny.yaml "${@:3}" || verdict "$1" "exit code $?"
  is "$1" "$2 $2 $2" eval "sed -nE 's/^(optimizer|gradient_norm|attention backward) +([0-9]+) .*/\2/p' err | xargs"
}
counted 'five steps: three are counted' 3 name=five steps=5
counted 'two steps: both' 2 name=two steps=2
counted 'a process that goes on forgets its own first two' 4 name=five steps=11
counted 'five steps of which the third is recorded for a device: the recording counts' 1 name=recorded steps=5 device=cuda_emulated cuda_graph=true eval_batches=1
shows 'the peak is that of the device' '^measured peak [0-9]+ GFLOP/s f32, memory [0-9.]+ GB/s, cuda_emulated$' err
accept 'without RICCI_TRACE nothing is said' train tiny.yaml name=quiet steps=5
finish

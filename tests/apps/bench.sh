#!/usr/bin/env bash
# ricci-bench: tables, JSON, drawings and messages; numbers are held to a calculation by hand in tests/apps/lab/benchmark.
#   bench.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"
command -v xmllint >/dev/null || needs 'xmllint (Debian: libxml2-utils)'

small=(--width 8 --heads 2 --layers 1 --rounds 2 --threads 1)
accept 'all mixers' bench "${small[@]}" --lengths 4,8 --tokens 8
verdict 'a row for each length and mixer' "$(awk 'NR > 2 && !/^the spread/ { print $2, $3, NF }' out | sort | uniq -c | tr -s ' ' | diff - <(printf ' 9 4 2 10\n 9 8 1 10\n'))"
accept 'JSON' bench metric p_only sdp metric "${small[@]}" --lengths 4,4 --sequences 1 --alone --json
verdict 'each mixer and length once, with its FLOPs' "$(sed -nE 's/^ *"(mixer|flops)": "?([^",]*)"?,$/\2/p' out | diff - <(printf 'metric\n4960.0\np_only\n4192.0\nsdp\n7264.0\n'))"
accept 'a drawing with a roofline, on an emulated GPU' bench metric dispatcher "${small[@]}" --lengths 2,4 --tokens 4 --device cuda_emulated --dtype bf16 --roofline -o plot.svg
verdict 'ops beside the measured peaks' "$(grep -qE '^measured peaks: [0-9.]+ GFLOP/s bf16, memory [0-9.]+ GB/s$' out && grep -qE '^dispatcher +shift_and_sum +1 ' out && grep -qE '^metric +times_metric backward +1 ' out || shown out)"
verdict 'no memory of the process on a GPU' "$(awk 'NR > 2 && $0 == "" { exit } NR > 2 && !/^the spread/ { print $9 }' out | sort -u | diff - <(echo -))"
verdict 'both drawings are XML' "$(xmllint --noout plot.svg plot_roofline.svg 2>&1)"
accept 'a page' bench dispatcher "${small[@]}" --lengths 4 --tokens 8 --ff 16 -o plot.html
verdict 'it has the table' "$(grep -q '<td>dispatcher</td><td>4</td><td>2</td>' plot.html || echo no)"
accept 'one layer at several scales' bench --layer "${small[@]:0:4}" --rounds 2 --threads 1 --lengths 4,16 --scales 1,4,8 -o layer.svg
verdict 'a row for each scale that has a cell' "$(awk 'NR > 2 { print $1, $2, $3 }' out | diff - <(printf '1x 4 4\n4x 4 1\n1x 16 16\n4x 16 4\n8x 16 2\n'))"
verdict 'its drawing is XML' "$(xmllint --noout layer.svg 2>&1)"
accept 'its JSON' bench --layer "${small[@]:0:4}" --rounds 2 --threads 1 --lengths 16 --scales 4 --sequences 2 --json
verdict 'with the formula of the paper' "$(grep -q '"published_bytes": 6656.0' out || shown out)"

# unlisted: the rungs in the output that no header's ladder lists with its lines.
root=$(sed -n 's/^ricci_SOURCE_DIR:STATIC=//p' "$build/CMakeCache.txt")
unlisted() {
  grep -oE '^(ops|cuda)/[^ ]+' out | sort -u | while read -r file; do
    cat "$root"/ops/{attention/attention,shift_and_sum/shift_and_sum,rows/layer_norm}.h "$root/cuda/gemm/gemm.h" | grep -qE "^//   $file +[0-9]+ " || echo "$file"
  done
}
accept 'the ladders of the ops' bench --rungs --width 16 --heads 2 --tokens 40 --rounds 1 --threads 1
verdict 'a table for each, and the peaks' "$(grep -E '^[a-z_]+: ' out | sed 's/;.*//' | diff - <(printf '%s\n' 'attention: 40 queries and keys, causal, width 16, heads: 2' \
  'gemm: [40 16] times [16 64]' 'gemm_row: [1 16] times [16 64]' 'shift_and_sum: 16 sequences of 40, width 16, heads: 2, levels: 6' \
  'layer_norm: x + branch and its norm, 640 rows of 16' 'threads: 1'))"
verdict 'their rungs are in the headers' "$(unlisted)"
accept 'one ladder as JSON' bench --rungs shift_and_sum shift_and_sum --width 8 --heads 1 --tokens 4 --rounds 1 --json
verdict 'its rungs, from the definition on' "$(sed -nE 's/^ *"(op|file|dtype)": "([^"]*)",?$/\2/p' out | diff - <(printf '%s\n' shift_and_sum ops/shift_and_sum/definition.cpp f32 \
  ops/first_rungs.cpp f64 ops/shift_and_sum/cpu.cpp f32))"
verdict 'the first has no gain, the others have one' "$(grep -c '"gain": [0-9]' out | diff - <(echo 2))"
accept 'ladders on an emulated GPU' bench --rungs --width 16 --heads 2 --tokens 8 --rounds 1 --threads 1 --device cuda_emulated
verdict 'their rungs are kernels' "$(grep -oE '^(ops|cuda)/[^ ]+\.cu' out | sort -u | diff - <(printf '%s\n' cuda/gemm/tiled.cu ops/attention/gpu/forward.cu \
  ops/rows/layer_norm.cu ops/rows/layer_norm_pieces.cu ops/shift_and_sum/gpu/forward.cu))"
verdict 'the headers list them' "$(unlisted)"

refuse 'an unknown ladder' 1 "no ladder is called 'atention', the nearest is 'attention'; there are attention, gemm, gemm_row, " bench --rungs atention
refuse 'ladders of a given length' 2 '--rungs excludes --lengths|--lengths excludes --rungs' bench --rungs --lengths 4
refuse 'ladders in a drawing' 2 '--rungs excludes --output|--output excludes --rungs' bench --rungs -o plot.svg
refuse 'an unknown mixer' 1 "no mixer is called 'metrik', the nearest is 'metric'" bench sdp metrik
refuse 'heads that do not divide the width' 1 '--heads: 3 does not divide the width 256' bench --heads 3
refuse 'a length that does not divide the tokens' 1 '--lengths: 100 does not divide the 2048 tokens of a step \(--tokens\)' bench --lengths 64,100
refuse 'tokens and sequences' 2 '--sequences' bench --tokens 64 --sequences 2
refuse 'a layer and mixers' 2 '--layer excludes mixers|mixers' bench sdp --layer
refuse 'scales without a layer' 2 '--scales requires --layer' bench --scales 1,4
refuse 'no rounds' 2 '--rounds: .*0' bench --rounds 0
refuse 'a width beyond its bound' 1 '--width: 10000000, expected 524288 or less' bench --width 10000000
refuse 'a length beyond 64 bits' 2 '--lengths' bench --lengths 99999999999999999999
refuse 'an unknown device' 1 "expected one of cpu, cuda, cuda_emulated, got 'tpu'" bench --device tpu
refuse 'an unknown dtype' 1 'f16' bench --dtype f16
refuse 'a drawing of an unknown kind' 1 'plot\.pdf: expected a name that ends in \.svg, \.png or \.html' bench "${small[@]}" -o plot.pdf
refuse 'an unknown theme' 1 "theme: expected auto, light or dark, got 'blue'" bench --theme blue
refuse 'a folder that is not there' 1 'none: No such file' bench -o none/plot.svg
CUDA_VISIBLE_DEVICES= refuse 'no GPU' 1 'device cuda: ' bench --device cuda

echo "$failures failed"
exit $((failures > 0))

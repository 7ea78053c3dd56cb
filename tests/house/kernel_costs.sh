#!/usr/bin/env bash
# Every file with kernels for the GPU says what they cost: the bytes they move, and the floor, the time that takes at best.
set -u
cd "$(dirname "$0")/../.."
files=$(grep -lE '^CUDA_[A-Z]+\(' -r cuda ops --include='*.cu')
faults=0
for file in $files; do
  for word in '[Bb]ytes' floor; do
    grep -qE "^ *//.*\b$word\b" "$file" || { echo "$file: no comment on $word"; faults=$((faults + 1)); }
  done
done
count=$(wc -w <<<"$files")
[ "$count" -gt 10 ] || { echo "only $count files were found"; exit 1; }
echo "$count files, $faults faults"
exit $((faults > 0))

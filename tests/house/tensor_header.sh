#!/usr/bin/env bash
# core/tensor.h is seen by every file: it must compile in at most 0.1 s (the best of five).
#   tensor_header.sh compiler
set -eu
cd "$(dirname "$0")/../.."
source=$(mktemp --suffix=.cpp)
trap 'rm -f "$source"' EXIT
echo '#include "core/tensor.h"' > "$source"
best=1000000
for _ in 1 2 3 4 5; do
  before=$(date +%s%N)
  "$1" -std=c++20 -I. -fsyntax-only "$source"
  took=$((($(date +%s%N) - before) / 1000))
  [ "$took" -ge "$best" ] || best=$took
done
echo "core/tensor.h: $best microseconds"
[ "$best" -le 100000 ]

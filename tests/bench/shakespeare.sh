#!/usr/bin/env bash
# nanoGPT's CPU recipe in ricci and PyTorch in turn: training seconds per run, and the median of the ratios.
#   shakespeare.sh BUILD PYTHON [rounds] [iterations]       RICCI_DATA must hold tinyshakespeare/input.txt
# PyTorch runs as installed and, if PRELOAD names a library, with it preloaded and with huge pages for malloc.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 python=$2 rounds=${3:-3} iterations=${4:-300}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tunables=glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=100000000000
torch() { env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE "$@" "$python" tests/bench/torch/shakespeare.py --data "$RICCI_DATA/tinyshakespeare/input.txt" --iterations "$iterations" --threads 2 --seed 1 --json "$work/torch.json" >/dev/null
          "$python" -c "import json; d = json.load(open('$work/torch.json')); print(d['train_seconds'])"; }
ricci() { rm -rf "$work/runs"
          (cd "$work" && "$build/ricci-train" "$OLDPWD/apps/configs/shakespeare_char.yaml" name=bench steps="$iterations" eval_batches=1 sample.tokens=0 threads=2) |
            grep -oE '[0-9.]+ s of training' | cut -d' ' -f1; }
for round in $(seq "$rounds"); do
  ours=$(ricci)
  shipped=$(torch)
  tuned=$shipped
  [ -z "${PRELOAD:-}" ] || tuned=$(torch LD_PRELOAD="$PRELOAD" GLIBC_TUNABLES=$tunables)
  echo "$round ours $ours s, PyTorch as installed $shipped s, tuned $tuned s"
  echo "$ours $shipped $tuned" >> "$work/all"
done
awk '{ print $1 / $2 }' "$work/all" | sort -n | awk '{ r[NR] = $1 } END { print "median ratio to PyTorch as installed:", r[int((NR + 1) / 2)] }'
awk '{ print $1 / $3 }' "$work/all" | sort -n | awk '{ r[NR] = $1 } END { print "median ratio to PyTorch tuned:", r[int((NR + 1) / 2)] }'

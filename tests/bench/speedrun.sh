#!/usr/bin/env bash
# A CPU speedrun: minutes until a fixed recipe on tinyshakespeare reaches a fixed loss, in bits per byte of the validation text. The recipe
# is apps/configs/shakespeare_char.yaml. Its last steps have a low learning rate, so most of its steps are needed. Every 100 steps the full
# validation text is evaluated; evaluation time is excluded. Prints a row for tests/bench/README.md.
#   speedrun.sh BUILD [BITS] [KEY=VALUE ...]       RICCI_DATA must hold tinyshakespeare/input.txt; BITS: 2.80 by default
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "${1:?build folder}" && pwd) bits=${2:-2.80}
shift $(($# < 2 ? $# : 2))
[[ $bits =~ ^[0-9]+(\.[0-9]+)?$ ]] || { echo "speedrun.sh: bits: expected a number, got $bits" >&2; exit 2; }
work=$(mktemp -d)
trainer=
trap '[ -z "$trainer" ] || kill "$trainer" 2>/dev/null || true; wait; rm -rf "$work"' EXIT
config=$PWD/apps/configs/shakespeare_char.yaml
(cd "$work" && exec "$build/ricci-train" "$config" name=speedrun runs="$work" eval_every=100 eval_batches=0 log_every=10 sample.tokens=0 "$@") >"$work/log" 2>&1 &
trainer=$!
# Every character of this text is a byte. Prints step, training seconds and bits of the first evaluation that is low enough.
reached() {
  [ -s "$work/speedrun/metrics.jsonl" ] || return 0
  awk -v bits="$bits" '
    function number(key) { return match($0, "\"" key "\":-?[0-9.e+-]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) : "" }
    { tokens = number("tokens"); speed = number("tokens_per_s"); if (speed > 0) { seconds += (tokens - before) / speed; before = tokens } }
    number("val_loss") != "" && number("val_loss") / log(2) <= bits { printf "%d %.1f %.4f\n", number("step"), seconds, number("val_loss") / log(2); exit }
  ' "$work/speedrun/metrics.jsonl"
}
result=
while result=$(reached) && [ -z "$result" ] && kill -0 "$trainer" 2>/dev/null; do sleep 0.5; done
result=$(reached)
if [ -z "$result" ]; then
  echo "speedrun.sh: the run ended before it reached $bits bits per byte:" >&2
  tail -n 3 "$work/log" >&2
  exit 1
fi
read -r step seconds found <<<"$result"
version=$(sed -n '1s/^# //p' "$work/speedrun/config.yaml")
processor=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
minutes=$(awk -v s="$seconds" 'BEGIN { printf "%.2f", s / 60 }')
echo "$minutes minutes of training until $found bits per byte, at step $step ($version)"
echo "| speedrun to $bits bits per byte on ${processor:-an unknown processor}${*:+, $*} | $minutes min, $step steps, $found bits per byte |"

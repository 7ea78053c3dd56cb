# shellcheck shell=bash disable=SC2154,SC2034
# The gradient checks, and the parts test and sanitize of tests/gpu.sh, which reads this file.

# ---- test
tests_that() {  # passed, skipped or failed
  awk -v how="$1" '{ last[$1] = $2 } END { for (test in last) if (last[test] ~ how) print test }' "$state/ctest" | sort
}

# state/ctest: lines "test result" of all calls, the last one counts. Tests that failed are run again by the next call. With programs
# that were taken along, ctest finds the same tests beside them.
part_test() {
  local remaining left cuda failed
  if [ ! -e "$state/ctest" ] || [ "$(cat "$state/ctest.print" 2> /dev/null)" != "${print_of[test]}" ]; then
    : > "$state/ctest"
    : > "$state/skips"
    echo "${print_of[test]}" > "$state/ctest.print"
  fi
  ctest --test-dir "$bin" -N -L GPU | sed -nE 's/^ *Test +#[0-9]+: //p' | sort > "$state/tests"
  remaining=$(comm -23 "$state/tests" <(tests_that 'passed|skipped') | paste -sd'|')
  if [ -n "$remaining" ]; then
    limited 600 ctest --test-dir "$bin" -L GPU -V -j "$(nproc)" --timeout 240 -R "^($remaining)\$" | tee "$state/ctest.out"
    awk '/^ *[0-9]+\/[0-9]+ Test +#/ { print $4, / Passed / ? "passed" : /\*\*\*Skipped/ ? "skipped" : "failed" }' \
      "$state/ctest.out" >> "$state/ctest"
    grep -E '^[0-9]+: ' "$state/ctest.out" | grep -oE 'skipped( on [a-z_]+)?: .*' >> "$state/skips"
  fi
  failed=$(tests_that failed | xargs) left=$(comm -23 "$state/tests" <(tests_that .) | wc -l)
  row "ctest, GPU" "$(tests_that passed | wc -l) passed, $(tests_that skipped | wc -l) skipped, failed: ${failed:-none}" \
    "$(verdict test -s "$state/tests" -a -z "$failed")"
  [ "$left" = 0 ] || [ -n "$failed" ] || row "ctest, GPU" "none failed, $left did not end, run it again" unfinished
  cuda=$(grep -c '^skipped on cuda:' "$state/skips")
  row "skipped on cuda" "$cuda" "$(verdict test "$cuda" = 0)"
  row "other skips" "$(grep -vc '^skipped on cuda:' "$state/skips"), listed below" -
}

check_gradients() {
  local output=$state/check.out code last worst
  limited 240 "$bin/ricci-check" --device cuda 2> "$output.err" | tee "$output"
  code=$? last=$(tail -n 1 "$output")
  worst=$(awk '$3 ~ /e[-+]/ && $3 > worst { worst = $3 } END { print worst }' "$output")
  if [ $code = 124 ]; then
    row "ricci-check on cuda" "did not end, run it again" unfinished
  else
    row "ricci-check on cuda" "${last%% (*}, worst ${worst:-not measured}" "$(verdict test $code = 0 -a -n "$worst")"
    row cuBLASLt "$cublas" "$(verdict test -z "${RICCI_WITHOUT_CUBLAS:-}" -a -z "$(grep 'cannot be loaded' "$output.err")")"
  fi
  cat "$output.err"
}

# ---- sanitize
sanitize_op() {  # tool op: leaves OP.clean, OP.bad, OP.none (it has no gradient check) or, if stopped, nothing
  local file=$state/sanitize/$1/$2
  limited 150 compute-sanitizer --tool "$1" "$bin/ricci-check" --device cuda --op "$2" > "$file.log" 2>&1
  if grep -q 'no op is called' "$file.log"; then
    touch "$file.none"
  elif grep -q 'wrong (tolerance' "$file.log"; then
    if grep -qE '(ERROR|RACECHECK) SUMMARY: 0 ' "$file.log"; then touch "$file.clean"; else touch "$file.bad"; fi
  fi
}

sanitize_ops() {  # tool: six ops at a time; those that were clean are not run again
  local folder=$state/sanitize/$1 op ops clean bad left
  if [ "$(cat "$folder/of.print" 2> /dev/null)" != "${print_of[sanitize]}" ]; then rm -rf "$folder"; fi
  mkdir -p "$folder" && rm -f "$folder"/*.bad && echo "${print_of[sanitize]}" > "$folder/of.print"
  mapfile -t ops < <("$bin/ricci-check" --list)
  for op in "${ops[@]}"; do
    if [ -e "$folder/$op.clean" ] || [ -e "$folder/$op.none" ] || [ $((deadline - SECONDS)) -lt 20 ]; then continue; fi
    while [ "$(jobs -rp | wc -l)" -ge 6 ]; do wait -n; done
    sanitize_op "$1" "$op" &
  done
  wait
  for op in "$folder"/*.bad; do [ ! -e "$op" ] || head -c 200000 "${op%.bad}.log"; done
  bad=$(find "$folder" -name '*.bad' | wc -l) clean=$(find "$folder" -name '*.clean' | wc -l)
  left=$((${#ops[@]} - bad - $(find "$folder" -name '*.none' -o -name '*.clean' | wc -l)))
  row "$1, ops" "$clean clean, $bad with findings, $left did not end" "$(verdict test "$bad" = 0 -a "$clean" -gt 0)"
  [ "$left" = 0 ] || [ "$bad" != 0 ] || row "$1, ops" "$clean clean, $left did not end, run it again" unfinished
}

# Some machines let no tool attach to the GPU: then the first op tells, and nothing more is tried.
refused() {
  [ -z "$(find "$state/sanitize" -name '*.clean' -print -quit)" ] &&
    grep -rqsE 'Device not supported|not supported on this (system|platform)|Unable to attach|Failed to initialize' --include='*.log' "$state/sanitize"
}

part_sanitize() {
  local first
  command -v compute-sanitizer >/dev/null || { plan sanitize "no compute-sanitizer" > "$rows"; return; }
  first=$("$bin/ricci-check" --list | head -n 1)
  mkdir -p "$state/sanitize/memcheck" && sanitize_op memcheck "$first"
  if refused; then
    plan sanitize "compute-sanitizer is refused here" > "$rows"
    return
  fi
  sanitize_ops memcheck
  sanitize_ops racecheck
  step "memcheck, training" sanitize_training
}

sanitize_training() {
  local wrapper=(compute-sanitizer --tool memcheck) log=$state/sanitize/training.log
  train_run 120 memcheck device=cuda steps=2 model.layers=1 batch=4 train_fraction=0.999 2>&1 | tee "$log"
  if grep -q 'after 2 steps' "$log"; then
    row "memcheck, training" "$(grep -o 'ERROR SUMMARY: .*' "$log")" "$(verdict grep -q 'ERROR SUMMARY: 0 ' "$log")"
  else
    row "memcheck, training" "training failed or did not end, see sanitize.log" unfinished
  fi
}

# shellcheck shell=bash disable=SC2154,SC2034
# The part papers of tests/gpu.sh, which reads this file: figure 2 of the Dispatcher paper, then the rows of its table 1 that are trained on
# small texts. If the time ends first, a training run is scored at the epoch that it reached, and the next call continues it.
# The texts are under $RICCI_DATA, or in the package: `pack` copies them from there.

pack_texts() {  # folder of the package
  [ -d "${RICCI_DATA:-}/ptb" ] || { echo "no texts for the part papers, because RICCI_DATA has no ptb"; return; }
  mkdir -p "$1/data"
  (cd "$RICCI_DATA" && cp -r --parents --no-preserve=mode ptb wikitext-2 tokenizers/bert/bert-base-cased-vocab.txt "$1/data")
}

# A step of six blocks on four sequences of each length. The paper gives no numbers, so the bar is its claim: for a longest sequence of
# twice the length, the time of attention grows by a larger factor than the time of the Dispatcher.
figure_lengths=128,256,512,1024,2048,4096,8192,16384
measure_figure_2() {
  local length attention dispatcher
  ours 60 figure2 bench sdp dispatcher --width 512 --layers 6 --heads 1 --sequences 4 --lengths "$figure_lengths" \
    --device cuda --dtype bf16 -o "$OUT/figure2.svg" || return
  while read -r length attention dispatcher; do
    row "figure 2, $length tokens" "attention $attention ms, Dispatcher $dispatcher ms" -
  done < <(figure_times)
  read -r length attention dispatcher < <(figure_times | tail -n 2 |
    awk 'NR == 1 { attention = $2; dispatcher = $3 } NR == 2 { printf "%d %.2f %.2f\n", $1, $2 / attention, $3 / dispatcher }')
  result "to $length tokens: attention $attention x, Dispatcher $dispatcher x" \
    "$(verdict awk -v attention="$attention" -v dispatcher="$dispatcher" 'BEGIN { exit !(attention > dispatcher) }')"
}
figure_times() { awk '$1 == "sdp" { ms[$2] = $4 } $1 == "dispatcher" && $2 in ms { print $2, ms[$2], $4 }' "$logs/figure2.txt"; }

setting() {  # run file, key: of the file, or else of its base
  local file=$root/apps/configs/dispatcher/$1.yaml base
  sed -n "s/^$2: //p" "$file" | grep . && return
  base=$(sed -n 's/^base: \(.*\)\.yaml$/\1/p' "$file")
  [ -z "$base" ] || setting "$base" "$2"
}
last_of() { grep -oP "\"$2\":\K[0-9]+" "$1/metrics.jsonl" | tail -n 1; }  # run, key: a whole number
time_left() { echo $(((finish - $(now)) / second)); }

# Twelve evaluations, since each better one saves 200 MB. If a step cannot be recorded, training does without the graph.
train_paper() {  # run file, log
  local tokenizer graph code
  tokenizer=$(setting "$1" tokenizer)
  [ -e "$tokenizer" ] || ours 60 "$2" tokenize train "$RICCI_DATA/$(setting "$1" data)" --lowercase --eos line \
    --from "$RICCI_DATA/tokenizers/bert/bert-base-cased-vocab.txt" -o "$tokenizer" || return
  for graph in true false; do
    ours $(($(time_left) - 40)) "$2" train "$root/apps/configs/dispatcher/$1.yaml" device=cuda precision=bf16 cuda_graph=$graph \
      eval_every=$(($(setting "$1" steps) / 12)) checkpoint_every=0
    code=$?
    if [ $code = 0 ] || was_stopped $code; then return 0; fi
    last_line  # into the log of the part
  done
  return $code
}

# The paper trains for 60 epochs. Ours has one seed, and not quite the paper's vocabulary, so it can be worse by 5%.
measure_perplexity() {  # run file, published perplexity
  local name=$1 run text code perplexity epoch value
  run=$state/papers/runs/$name text=$(setting "$1" data)
  export RICCI_DATA=${RICCI_DATA:-$bin/data}
  [ -e "$RICCI_DATA/$text" ] || { result "not measured: RICCI_DATA has no $text" -; return; }
  [ "$(time_left)" -gt 60 ] || return 124
  mkdir -p "$state/papers"
  [ "$run" -nt "$bin/libricci_programs.so" ] || rm -rf "$run"  # from an earlier build
  log=$logs/$name.txt
  (cd "$state/papers" && train_paper "$1" "$name") || return
  grep '"val_loss":[0-9]' "$run/metrics.jsonl"  # into the log of the part
  ours 40 "${name}_test" eval "$run@best" --data "${text/train/test}" --device cuda
  code=$? perplexity=$(grep -oP 'token, perplexity \K[0-9.]+' "$log")
  epoch=$(last_of "$run" step) epoch=$((${epoch:-0} * 60 / $(setting "$1" steps)))
  value="${perplexity:-not scored: $(last_line)}, epoch $epoch of 60, $(last_of "$run" tokens_per_s) tokens/s"
  if [ $epoch -lt 60 ] || was_stopped $code; then result "$value" unfinished; return; fi
  result "$value" "$(verdict awk -v ours="${perplexity:-999}" -v published="$2" 'BEGIN { exit !(ours <= 1.05 * published) }')"
}

# The smaller text comes first: its training runs are shorter.
part_papers() {
  local each
  step 'figure 2' - 'attention grows faster' measure_figure_2
  for each in ${figure_lengths//,/ }; do plan "figure 2, $each tokens"; done
  for each in ptb_dispatcher:35.40 ptb_msa:40.58 wikitext2_dispatcher:50.23 wikitext2_msa:55.05; do
    step "${each%:*}, perplexity" "${each#*:} published" '1.05 x published' measure_perplexity "${each%:*}" "${each#*:}"
  done
}

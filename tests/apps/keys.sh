#!/usr/bin/env bash
# Every key of a run file does something: another value changes what ricci-train prints or leaves behind, or is an error.
# And a key that another choice reads is an error without it. The keys are those of --help-config, so that a new one
# without a line here fails.
#   keys.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"

# key, another value, and what else must be set for the key to be read or to matter; the last of it is the choice that reads it.
keys='
name                   other
runs                   elsewhere
model.family           classifier
model.preset           msa
model.mixer            identity
model.vocab            7
model.ctx              9
model.d                12
model.layers           2
model.causal           false
model.heads            2
model.window           3
model.qk_norm          true
model.kv_heads         1
model.head_width       6
model.qkv_bias         false
model.share_heads      true    model.heads=2 model.mixer=dispatcher
model.coef_act         none    model.mixer=dispatcher
model.levels           2       model.mixer=dispatcher
model.drop_level0      false   model.dropout=0.9 model.mixer=dispatcher
model.mixer_bias       true    model.mixer=dispatcher
model.value_proj       true    model.mixer=metric
model.pool             4       model.mixer=avgpool
model.classes          3       data=labels.tsv format=tsv label_field=1 sample.tokens=0 model.family=classifier
model.scales           [1,2]   model.family=topdown
model.down             max     model.family=topdown
model.conv_kernel      2       model.family=topdown model.down=conv
model.shift            block   model.family=topdown
model.loss_from        first_full  model.scales=[1,2] model.family=topdown
model.bag_weights      [0.5]       model.scales=[1,2] model.family=topdown
model.chain            false   model.family=bottomup
model.windows          0:2,1:4,2:5,2:6  model.family=retina
model.cell_rule        end     model.windows=0:5,0:5,0:5,0:5 model.family=retina
model.head_groups      [0,0,0,1]  model.family=retina
model.scale            2       sample.tokens=0 model.family=coarse
model.norm             post
model.activation       relu
model.ff               7
model.dropout          0.3
model.bias             false
model.norm_bias        false
model.norm_kind        rms
model.norm_eps         0.1
model.gated            true
model.fused_gelu       true
model.positions        sinusoidal
model.scale_embedding  true
model.rope_theta       100  model.positions=rope
model.rope_fraction    0.5  model.positions=rope
model.rope_scaling     linear  model.positions=rope
model.rope_factor      2  model.positions=rope model.rope_scaling=linear
model.rope_low         2  model.positions=rope model.rope_scaling=llama3
model.rope_high        8  model.positions=rope model.rope_scaling=llama3
model.rope_trained_ctx 64  model.positions=rope model.rope_scaling=llama3
model.tie              false
model.head_bias        true
data                   other.txt
sort_symbols           4       sample.tokens=0 model.ctx=21 data=sorter
sort_length            12      sample.tokens=0 model.ctx=21 data=sorter
format                 tsv
text_field             2       format=tsv
label_field            2       data=labels.tsv format=tsv label_field=1 sample.tokens=0 model.family=classifier
labels                 [1,0]   data=labels.tsv format=tsv label_field=1 sample.tokens=0 model.family=classifier
validation             other.txt
train_fraction         0.7
tokenizer              byte
eos                    line    tokenizer=word
chat                   llama3  data=talks.jsonl tokenizer=markers.json model.ctx=64 sample.tokens=0 format=messages
init                   base
init_changes           [tokenizer]
freeze                 tok
order                  columns
weights                [1,3]   order=shuffled
shuffle_buffer         1       order=shuffled
pack                   best    order=shuffled
batch                  3
accumulation           2
max_ranks              0
recompute              blocks
batch_invariant        true
context                7
steps                  5
schedule               linear
lr                     0.002
min_lr                 0.0005
schedule_steps         3
warmup                 2
decay_fraction         0.9     schedule=wsd
optimizer              adam
beta1                  0.5
beta2                  0.5
eps                    0.1
momentum               0.5     optimizer=sgd
nesterov               true    optimizer=sgd
weight_decay           0.5
decay_embeddings       false
clip                   0.1
seed                   7
device                 cuda_emulated
precision              bf16
cuda_graph             true
tune_products          true
threads                2
rank_timeout           0
eval_every             3
eval_batches           1
eval_from              3
patience               -1
log_every              2
checkpoint_every       5
keep_checkpoints       1
sample.tokens          9
sample.every           2
sample.prompt          the
sample.temperature     0.5
sample.top_k           1
sample.top_p           0.1
sample.min_p           1
sample.seed            5
'
sed 's/fox/cat/; s/quick/slow/' text.txt >other.txt
awk '{ printf "%d\t%d\t%s\n", NR % 2, NR % 3 == 0, $0 }' text.txt >labels.tsv
awk '{ printf "{\"messages\": [{\"role\": \"user\", \"content\": \"%d\"}, {\"role\": \"assistant\", \"content\": \"%s\"}]}\n", NR, $0 }' text.txt >talks.jsonl
markers=()
for marker in im_start im_end begin_of_text start_header_id end_header_id eot_id; do markers+=(--special "<|$marker|>"); done
run tokenize train talks.jsonl --vocab 330 "${markers[@]}" -o markers.json || shown err
sed -i 's/, heads: 2//' tiny.yaml  # not every mixer reads it

run train tiny.yaml name=base tokenizer=byte && mv runs/base base || shown err  # for init to start from

# effect KEY=VALUE ...: what a small run prints and leaves behind, without times. Fails where the run does, with the line in err.
effect() {
  rm -rf runs
  run train tiny.yaml name=a steps=6 eval_every=2 checkpoint_every=2 log_every=1 warmup=1 sample.tokens=20 "$@" || return
  sed -E 's/[0-9.]+ s of training//' out
  (cd runs/* 2>/dev/null && ls checkpoints && sed -E 's/"(tokens_per_s|time)":[^,}]*//g' metrics.jsonl && cat tokenizer.json model.safetensors) | sha256sum
}

known=$("$build/ricci-train" --help-config | awk '{ line = $0; sub(/^# /, "", line); sub(/^  # /, "  ", line) }
  line ~ /^[a-z_]+:$/ { section = line; sub(/:$/, ".", section); next }
  line !~ /^  / { section = "" }
  { key = line; sub(/:.*/, "", key); sub(/^ +/, "", key); print section key }' | sort -u)
listed=$(awk 'NF { print $1 }' <<<"$keys" | sort -u)
verdict 'the list has every key' "$(comm -23 <(echo "$known") <(echo "$listed") | xargs)"
verdict 'the list has no other key' "$(comm -13 <(echo "$known") <(echo "$listed") | xargs)"

verdict 'the same keys have the same effect' "$([ "$(effect)" = "$(effect)" ] || echo no)"

declare -A before
while read -r key value needs; do
  [ -n "$key" ] || continue
  [ -n "${before[-$needs]:-}" ] || before[-$needs]=$(effect $needs)
  if [ "${before[-$needs]}" = "" ]; then
    verdict "$key: a run with $needs" 'fails'
  elif after=$(effect $needs "$key=$value"); then
    verdict "$key" "$([ "$after" != "${before[-$needs]}" ] || echo "$value changes nothing")"
  else
    verdict "$key=$value is an error" "$(grep -qE "^ricci-train: .*${key##*.}" err && [ "$(grep -c '' err)" = 1 ] || echo 'expected one line with the key')"
  fi
  [ -n "$needs" ] || continue
  refuse "$key without $needs" 1 "command line: $key: nothing reads it here, only .*$(sed 's/^model\.//; s/=/: /' <<<"${needs##* }")" train tiny.yaml "$key=$value"
done <<<"$keys"
# ---- A command line has no comments
accept 'a name with a number sign' train tiny.yaml 'name=exp #1' steps=1
accept 'and another one' train tiny.yaml 'name=exp #2' steps=1
verdict 'are two runs' "$(ls -d runs/exp* | diff - <(printf 'runs/exp #1\nruns/exp #2\n'))"
verdict 'with their names' "$(grep -x 'name: "exp #1"' "runs/exp #1/config.yaml" >out || instead head -3 "runs/exp #1/config.yaml")"
accept 'a name that begins with one' train tiny.yaml 'name=#3' steps=1
verdict 'is a name' "$([ -e 'runs/#3/config.yaml' ] || instead ls runs)"
accept 'a text with one' train tiny.yaml 'name="a # b"' steps=1
verdict 'in quotes' "$([ -e 'runs/a # b/config.yaml' ] || instead ls runs)"
refuse 'a comment behind a number' 1 "lr: expected .*, got '1e-3 #x'" train tiny.yaml 'lr=1e-3 #x'
refuse 'a comment behind quotes' 1 "'#x' follows the value; a text with # in it needs quotes around all of it" train tiny.yaml 'name="a" #x'
refuse 'a comment behind a list' 1 "'# two' follows the value" train tiny.yaml 'data=[text.txt] # two'
refuse 'a blank in front of a name' 1 "name: ' exp' cannot be the name of a folder" train tiny.yaml 'name= exp'
refuse 'a line end in a name' 1 'name: a control character cannot be in the name of a folder' train tiny.yaml $'name=a\nb'

exit $((failures > 0))

#!/usr/bin/env bash
# Every key of a run file has an effect: a different value changes the output or files of ricci train, or is an error. A key that only a
# certain choice reads is an error without that choice. The keys come from --help-config, so a new key without a line here fails.
#   keys.sh build-folder
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm  # on a disk, small runs wait for thousands of syncs
. "$(dirname "$0")/outputs.sh" "$@"

# Each line: the settings that the keys after the bar need to have an effect (the last is the choice that reads them), then the keys, each
# with a different value than in a small run.
keys='
| name=other runs=elsewhere data=other.txt format=tsv encoding=latin-1 validation=other.txt train_fraction=0.7 tokenizer=byte eos=line
| model.family=classifier model.preset=msa model.mixer=identity model.vocab=7 model.ctx=9 model.d=12 model.layers=2 model.causal=false
| model.heads=2 model.window=3 model.qk_norm=true model.kv_heads=1 model.head_width=6 model.qkv_bias=false
| model.norm=post model.norm_bias=false model.norm_kind=rms model.norm_eps=0.1 model.bias=false model.dropout=0.3
| model.activation=relu model.ff=7 model.gated=true
| model.positions=sinusoidal model.scale_embedding=true model.tie=false model.head_bias=true
| init=base freeze=tok order=columns
| batch=3 accumulation=2 reduce_dtype=f16 rank_timeout=0 recompute=blocks batch_invariant=true context=7 steps=5
| schedule=linear lr=0.002 min_lr=0.0005 schedule_steps=3 warmup=2
| optimizer=adam beta1=0.5 beta2=0.5 eps=0.1 weight_decay=0.5 decay_embeddings=false clip=0.1 lr_of={"tok":0.1} decay_of={"tok":0.1}
| seed=7 device=cuda_emulated precision=bf16 cuda_graph=true threads=2
| eval_every=3 eval_batches=1 eval_from=3 patience=-1 log_every=2 norms_every=3 checkpoint_every=3 keep_checkpoints=1
| sample.tokens=9 sample.every=2 sample.prompt=the sample.temperature=0.5 sample.top_k=1 sample.top_p=0.1 sample.min_p=1 sample.seed=5
model.mixer=dispatcher | model.coef_act=none model.levels=2 model.mixer_bias=true
model.heads=2 model.mixer=dispatcher | model.share_heads=true
model.dropout=0.9 model.mixer=dispatcher | model.drop_level0=false
model.mixer=metric | model.value_proj=true
model.mixer=avgpool | model.pool=4
data=labels.tsv format=tsv label_field=1 sample.tokens=0 model.family=classifier | model.classes=3 label_field=2 labels=[1,0]
model.family=topdown | model.scales=[1,2] model.down=max model.shift=block
model.family=topdown model.down=conv | model.conv_kernel=2
model.scales=[1,2] model.family=topdown | model.loss_from=first_full model.bag_weights=[0.5]
model.family=bottomup | model.chain=false
model.family=retina | model.windows=0:2,1:4,2:5,2:6 model.head_groups=[0,0,0,1]
model.windows=0:5,0:5,0:5,0:5 model.family=retina | model.cell_rule=end
sample.tokens=0 model.family=coarse | model.scale=2
model.positions=rope | model.rope_theta=100 model.rope_fraction=0.5 model.rope_scaling=linear
model.positions=rope model.rope_scaling=linear | model.rope_factor=2
model.positions=rope model.rope_scaling=llama3 | model.rope_low=2 model.rope_high=8 model.rope_trained_ctx=64
data=fields.jsonl format=jsonl | text_field=title
data=talks.jsonl tokenizer=markers.json model.ctx=64 sample.tokens=0 format=messages | chat=llama3
order=shuffled | weights=[1,3] shuffle_buffer=1 pack=best
schedule=wsd | decay_fraction=0.9
optimizer=sgd | momentum=0.5 nesterov=true
optimizer=muon | momentum=0.5 nesterov=false ns_steps=1 adjust_lr=match_rms_adamw
'
echo 'the café' >>text.txt
sed 's/fox/cat/; s/quick/slow/' text.txt >other.txt
awk '{ printf "%d\t%d\t%s\n", NR % 2, NR % 3 == 0, $0 }' text.txt >labels.tsv
awk '{ printf "{\"messages\": [{\"role\": \"user\", \"content\": \"%d\"}, {\"role\": \"assistant\", \"content\": \"%s\"}]}\n", NR, $0 }' text.txt >talks.jsonl
awk '{ printf "{\"text\": \"%s\", \"title\": \"%d foxes and a café\"}\n", $0, NR }' text.txt >fields.jsonl
markers=()
for marker in im_start im_end begin_of_text start_header_id end_header_id eot_id; do markers+=(--special "<|$marker|>"); done
run tokenize train talks.jsonl --format messages --vocab 330 "${markers[@]}" -o markers.json || shown err
sed -i 's/, heads: 2//' tiny.yaml  # some mixers do not read it

run train tiny.yaml name=base tokenizer=byte && mv runs/base base || shown err  # for init

# effect KEY=VALUE ...: the output and files of a small run, without times. Fails if the run does, with the line in err.
effect() {
  rm -rf runs
  run train tiny.yaml name=a steps=4 eval_every=2 checkpoint_every=2 log_every=1 warmup=1 sample.tokens=20 "$@" || return
  { sed -E 's/[0-9.]+ s of training//' out && cd runs/* 2>/dev/null && ls checkpoints && sed -E 's/"(tokens_per_s|time)":[^,}]*//g' metrics.jsonl &&
    cat tokenizer.json model.safetensors; } | sha256sum
}

known=$("$build/ricci-train" --help-config | awk '/^# ----/ || /^          +#/ || !NF { next }
  { line = $0; sub(/^# /, "", line); sub(/^  # /, "  ", line) }
  line ~ /^[a-z_]+:$/ { section = line; sub(/:$/, ".", section); next }
  line !~ /^  / { section = "" }
  line !~ /^base:/ { key = line; sub(/:.*/, "", key); sub(/^ +/, "", key); print section key }' | sort -u)
listed=$(sed 's/.*|//' <<<"$keys" | grep -oE '[^ =]+=' | tr -d = | sort -u)
verdict 'the list has every key' "$(comm -23 <(echo "$known") <(echo "$listed") | xargs)"
verdict 'the list has no other key' "$(comm -13 <(echo "$known") <(echo "$listed") | xargs)"

is 'the same keys have the same effect' "$(effect)" effect

last=none
while IFS='|' read -r needs changes; do
  [ "$needs" = "$last" ] || before=$(effect $needs)
  last=$needs
  [ -n "$before" ] || verdict "a run with $needs" 'fails'
  for change in $changes; do
    key=${change%%=*}
    if after=$(effect $needs "$change"); then
      verdict "$key" "$([ "$after" != "$before" ] || echo "$change changes nothing")"
    else
      verdict "$change is an error" "$(grep -qE "^ricci train: .*${key##*.}" err && [ "$(grep -c '' err)" = 1 ] || echo 'expected one line with the key')"
    fi
    [ -z "$needs" ] || refuse "$key without $needs" 1 "command line: $key: is read only with .*$(xargs -n 1 <<<"$needs" | sed -n '$s/^model\.//; s/=/: /; $p')" train tiny.yaml "$change"
  done
done <<<"$keys"

# ---- A base: its keys come first, and it is in the folder of its file
rm -rf runs
mkdir files
sed /^name:/d tiny.yaml >files/first.yaml
printf 'base: first.yaml\nsteps: 5\nlr: 0.01\n' >files/second.yaml
printf 'model: {d: 8}\nbase: files/second.yaml\nsteps: 3\n' >third.yaml
accept 'a run file with a base that has one' train third.yaml name=based '~log_every' lr=0.02
is 'the last of a key counts' $'  d: 8\n  layers: 1\nbatch: 2\nsteps: 3\nlr: 0.02' grep -E '^ *(d|layers|batch|steps|lr|log_every|base):' runs/based/config.yaml
echo 'stepz: 3' >>files/first.yaml
refuse 'a mistake in a base' 1 "files/first\.yaml:[0-9]+: unknown key 'stepz', the nearest known key is 'steps'" train third.yaml
echo 'base: none.yaml' >files/second.yaml
refuse 'no such base' 1 'cannot read files/none\.yaml: No such file' train third.yaml
echo 'base: second.yaml' >files/second.yaml
refuse 'a file that is its own base' 1 'files/second\.yaml:1: base: the chain has more than 8 files' train third.yaml

# ---- A command line has no comments
rm -rf runs
for name in 'exp #1' 'exp #2' '#3' '"a # b"'; do accept "the name $name" train tiny.yaml "name=$name" steps=1; done
is 'are names' $'#3\na # b\nexp #1\nexp #2' ls runs
refuse 'a comment behind quotes' 1 'expected " at the end of the value' train tiny.yaml 'name="a" #x'
refuse 'a comment behind a list' 1 'expected \] at the end of the value' train tiny.yaml 'data=[text.txt] # two'
finish

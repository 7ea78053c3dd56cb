#!/usr/bin/env bash
# System calls that fail: of each kind of call, one gets an error, an interruption, half a read or write, or the end of the program. The
# program then prints one line and a code other than 0, or it does not need the call and ends with the correct bytes. The earlier files are
# intact, no temporary files remain, and a later call ends with the bytes of a call without faults.
#   faults.sh build-folder [--all [name ...]]
# Without --all each fault of each kind of call is tried once, at a random call of one of the programs in turn, except ricci compare, which
# is slow. With --all, every call of all programs or of the named ones is tried, one program per processor at a time. That takes an hour, so
# with RICCI_TEST_ALL the distance from one call to the next grows by a half. Allocations are thousands, so their distance grows by an
# eighth even with --all.
programs='train resume shards prepare tokenize import export gguf compare plot'
if [ $# = 1 ] && [ -n "${RICCI_TEST_ALL:-}" ]; then set -- "$1" --some; fi
if [ $# -gt 1 ] && [ $# != 3 ]; then
  [ $# -gt 3 ] && programs=${*:3}
  xargs -n 1 -P "$(nproc)" "$0" "$1" "$2" <<<"$programs"
  exit
fi
models=$(cd "$(dirname "$0")/../../interop/models" && pwd) || exit 1
. "$(dirname "$0")/../programs.sh" "$@"
all=${2:-}
RANDOM=1
export TMPDIR=$folder/tmp OMP_NUM_THREADS=1
mkdir tmp work

# ---- The commands, in a folder with earlier files
declare -A commands=(
  [train]='train tiny.yaml name=new steps=3 checkpoint_every=1 keep_checkpoints=2'
  [resume]='train tiny.yaml name=old steps=4 checkpoint_every=1 keep_checkpoints=1'
  [shards]='train tiny.yaml data=shards name=new checkpoint_every=1'
  [prepare]='prepare text.txt --tokenizer byte -o new'
  [tokenize]='tokenize train text.txt --vocab 270 -o old.json'
  [import]='convert import hf runs/new'
  [export]='convert export runs/old new'
  [gguf]='convert export runs/old new.gguf --gguf f32'
  [compare]='compare pair.yaml steps=1 --json'
  [plot]='plot runs/old -o old.svg'
)
declare -A ways=(
  [open]='EIO EMFILE EINTR' [enter]='EIO' [create]='ENOSPC EIO EMFILE EINTR die' [read]='EIO EINTR short' [write]='ENOSPC EIO EINTR short die'
  [fsync]='ENOSPC EIO EINTR die' [ftruncate]='ENOSPC EIO EINTR die' [rename]='ENOSPC EIO EINTR die' [unlink]='EIO die'
  [mkdir]='ENOSPC EIO die' [stat]='EIO' [list]='EIO' [map]='ENOMEM EIO' [arena]='ENOMEM' [flock]='EINTR ENOLCK die'
  [close]='EIO EINTR die' [malloc]='ENOMEM'
)
kinds='open enter create read write fsync ftruncate rename unlink mkdir stat list map arena flock close malloc'
cd work
cp ../text.txt ../tiny.yaml . && touch -d '1 hour ago' text.txt
sed '/^name:/d; /^eval_every/d' tiny.yaml >small.yaml
printf 'a: [small.yaml]\nb: [small.yaml, model.layers=2]\n' >pair.yaml
accept 'a run of before' train tiny.yaml name=old tokenizer=bpe model.vocab=264 checkpoint_every=1 keep_checkpoints=1
accept 'shards of before' prepare text.txt --documents line --tokenizer char -o shards
accept 'a tokenizer of before' tokenize train text.txt --vocab 260 -o old.json
cp -r "$models/gpt2" hf && echo '{"name":"char","characters":"\nabcdefghi "}' >hf/tokenizer.json
echo drawing >old.svg
cd ..
mv work before
commands[resume]+=' tokenizer=bpe model.vocab=264'

# The number of lines on stderr, without lines that a comparison copies from its training runs, and without warnings: they give the reason
# before the comparison names the run. A training run without its cache prints that first.
told() {
  if [ $name = compare ]; then grep -vcE '^(run [0-9]|runs/|warmup: |the learning rate ends |[0-9,]+ tokens to train|step [0-9]|saved after|ricci train: |warning: )' err; else grep -vcE '^warning: .*; the text is not cached' err; fi
}

# faulty KIND AT WAY: the command in the folder work, with a fault.
faulty() {
  rm -rf work met cache tmp
  mkdir cache tmp
  cp -a before work
  cd work
  { "$build/ricci-bounded" 60 2048 env RICCI_FAULT="$*" RICCI_FAULT_MET="$folder/met" LD_PRELOAD="$build/libricci-signal-at.so" \
    "$build/ricci-${command[0]}" "${command[@]:1}" >../out 2>../err </dev/null; } 2>/dev/null
  code=$?
  cd ..
  [ -e met ]
}
again() { (cd work && "$build/ricci-bounded" 60 2048 "$build/ricci-${command[0]}" "${command[@]:1}" >../out 2>../err </dev/null); }
unfinished() {
  find work cache tmp -name '.*.tmp-*' -o -path 'tmp/?*'
  for store in cache/ricci/*; do
    [ ! -d "$store" ] || [ -e "$store/shard-00000.tokens" ] || [ -e "$store/text" ] || echo "$store"
  done
}
# The earlier files that are neither old nor new; the file `now` lists their state.
spoilt() {
  awk -v files=1 'FILENAME == "now" { now[$2] = $1; next } FILENAME == "expected" { after[$2] = $1; next }
    now[$2] != $1 && now[$2] != after[$2] && $2 !~ /metrics.jsonl/ { print $2 }' now expected original
}

# fault_of KIND AT WAY: the errors after a call with a fault, one per line.
fault_of() {
  local left first=$(head -1 err) may_leave=
  # After a kill, or without removing, listing or opening files, a program cannot clean up: then the next call does.
  case "$3 $1 $2" in die* | *unlink* | *list*+ | *open*+) may_leave=1 ;; esac
  tree work >now
  if [ $code = 0 ]; then
    [ "$may_leave" ] || diff expected now >difference || echo "exit code 0, but $(head -3 difference | xargs)"
    [ "$(grep -c '^ricci[- ]' err)" -le 1 ] || echo "more than one line: $(head -3 err | xargs)"
  elif [ $code = 1 ]; then
    [ "$(told)" = 1 ] && grep -qE '^ricci[- ][a-z]+: ' err || echo "not one line: $(head -3 err | xargs)"
  elif [ "$3 $code" != 'die 137' ]; then
    echo "exit code $code: $(head -3 err | xargs)"
  fi
  # A folder of the cache that cannot be locked stays empty, since another program could be using it.
  left=$(unfinished | grep -vxF "$(find cache -mindepth 2 -type d -empty)")
  [ -z "$left" ] || [ "$may_leave" ] || echo "left over: $left ($first)"
  left=$(spoilt)
  [ -z "$left" ] || echo "spoilt: $left"
  [ $code$may_leave = 0 ] && return
  again
  local later=$?
  [ $code != 1 ] || [ $later = 0 ] || echo "later: exit code $later, $(head -1 err) (first: $first)"
  tree work >now
  diff expected now >difference || echo "later: exit code $later, $(head -1 err), $(head -3 difference | xargs) (first: $first)"
  left=$(unfinished)
  [ -z "$left" ] || echo "later left over: $left (first: $first)"
}

# attempt KIND AT WAY: false if no such call is left.
attempt() {
  local fault
  faulty "$@" || return 1
  fault=$(fault_of "$@")
  tried=$((tried + 1))
  [ -z "$fault" ] || faults+=$'\n          '"$name: $*: ${fault//$'\n'/; }"
}

# each_call KIND WAY: every call of that kind, once and from there on.
each_call() {
  local at stays step
  for stays in '' +; do
    case $2$stays in EINTR+ | die+) continue ;; esac
    step=1
    for ((at = 1; at < 1000000; at += step)); do
      attempt "$1" $at$stays "$2" || break
      [ "$1" != malloc ] || step=$((1 + at / 8))
      [ "$all" = --all ] || step=$((1 + at / 2))
    done
  done
}
# one_call KIND WAY: a random call of that kind fails, once or from there on. False if the program has no such call.
one_call() {
  local at=$((1 + RANDOM % 12)) stays=
  case $2 in EINTR | die) ;; *) [ $((RANDOM % 2)) = 0 ] || stays=+ ;; esac
  [ "$1" != malloc ] || at=1 # the first comes before its error could be caught
  while [ $at -gt 0 ]; do
    attempt "$1" $at$stays "$2" && return
    at=$((at / 3))
  done
  return 1
}

# out_of_order: the losses at a power failure, from the calls that change files: a file is renamed before it is synced, a folder is never
# synced after a new name, a file is removed before the name of its successor is on the disk.
out_of_order() {
  awk '
    function folder(path) { sub("/[^/]*$", "", path); return path }
    $1 == "write" || $1 == "ftruncate" { unsynced[$2] = 1 }
    $1 == "open" || $1 == "mkdir" { if ($2 !~ /\.tmp-/) named[$2] = folder($2) }
    $1 == "rename" { if ($2 in unsynced) print $3 " renamed before it was synced"; delete unsynced[$2]; named[$3] = folder($3) }
    $1 == "unlink" {
      for (name in named) if (named[name] == folder($2) && name != $2 && $2 !~ /\.tmp-/) print $2 " removed before the folder was synced"
      delete named[$2]; delete unsynced[$2]
    }
    $1 == "fsync" { delete unsynced[$2]; for (name in named) if (named[name] == $2) delete named[name] }
    # The copy of the records for TensorBoard can lose its end.
    END { for (name in unsynced) if (name ~ /events\.out/) delete unsynced[name]
          for (name in named) print name " is in a folder that was not synced"
          for (name in unsynced) print name " was not synced" }' "$1" | head -3
}
# traced PLANTED: out_of_order of the command, with a planted bug or none.
traced() {
  rm -rf work calls cache && mkdir cache && cp -a before work
  (cd work && RICCI_PLANTED=$1 RICCI_CALLS=$folder/calls LD_PRELOAD=$build/libricci-signal-at.so "$build/ricci-${command[0]}" "${command[@]:1}") >out 2>err </dev/null
  out_of_order calls
}

# choose NAME: the next program, and the expected state of its folder.
choose() {
  name=$1
  read -ra command <<<"${commands[$name]}"
  [ ! -e "expected.$name" ] || cp "expected.$name" expected
}
tree before >original
[ "$all" ] && programs=${*:3} || programs=${programs/compare /}
for name in $programs; do
  choose $name
  order=$(traced none)
  tree work >"expected.$name"
  verdict "$name: $(grep -c '' calls) calls that change files, in an order that a power failure does not harm" "$order"
done
tried=0 faults= turns=($programs)
for kind in $kinds; do
  for way in ${ways[$kind]}; do
    for _ in $programs; do
      choose "${turns[0]}"
      turns=("${turns[@]:1}" "${turns[0]}")
      if [ "$all" ]; then each_call $kind $way; else one_call $kind $way && break; fi
    done
  done
done
: >out && : >err
verdict "$tried faults of $(echo $programs | tr ' ' ',')" "$faults"

# ---- Programs with planted bugs: each bug must be found
choose prepare
for planted in no_sync late_sync no_folder_sync; do
  verdict "a planted bug, $planted, is seen" "$([ -n "$(traced $planted)" ] || echo no)"
done
traced none >/dev/null
tree work >expected
faulty write 2 ignored
verdict 'a write whose error is ignored is seen' "$([ -n "$(fault_of write 2 ignored)" ] || echo no)"

echo "$failures failed"
exit $((failures > 0))

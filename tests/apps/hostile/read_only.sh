#!/usr/bin/env bash
# Read-only folders. Root can write everywhere, so the script changes the user.
#   read_only.sh build-folder
. "$(dirname "$0")/../programs.sh" "$@"
accept 'a small run' train tiny.yaml name=tiny steps=8 checkpoint_every=4
cp -r runs/tiny kept

if [ "$(id -u)" = 0 ]; then
  as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  chmod 755 "$folder"
  chown -R 65534:65534 cache text.txt
fi
"${as_user[@]}" test -x "$build/ricci-train" || needs 'a build folder that other users may read'

chmod -R a-w runs
refuse 'a run folder that is read-only' 1 "cannot write runs/tiny/[^ ]*: .*Permission denied" train tiny.yaml name=tiny steps=16 checkpoint_every=4
verdict 'nothing is lost' "$(diff -r kept runs/tiny 2>&1)"
refuse 'no room for a new folder' 1 'runs/new: cannot be created: Permission denied' train tiny.yaml name=new
accept 'it can be read' eval runs/tiny
chmod -R u+w runs
[ "$(id -u)" != 0 ] || chown -R 65534:65534 runs

# ---- The cache of a different user
[ "$(id -u)" != 0 ] || {
  mkdir -m 755 theirs
  RICCI_CACHE=$PWD/theirs run train tiny.yaml name=theirs
  verdict 'a cache that only another user may write' "$([ $? = 0 ] && [ "$(grep -c '' err)" = 1 ] && grep -qE '^warning: .*/theirs/.*: cannot be created: Permission denied; the text is not cached: the next run will encode it again$' err || echo no)"
  verdict 'nothing is in it' "$(ls theirs; cmp runs/{tiny,theirs}/tokenizer.json 2>&1)"
}

# ---- An unreadable folder is not empty
for rights in 000 300; do
  chmod $rights runs/tiny/checkpoints
  refuse "a folder of checkpoints that cannot be listed ($rights)" 1 'folder runs/tiny/checkpoints: cannot be listed: Permission denied' train tiny.yaml name=tiny steps=16 checkpoint_every=4
  refuse "nor be evaluated ($rights)" 1 'folder runs/tiny/checkpoints: cannot be listed: Permission denied' eval runs/tiny
  chmod 755 runs/tiny/checkpoints
done
verdict 'its records are not lost' "$(diff -r kept runs/tiny 2>&1)"
chmod 000 text.txt
refuse 'a text that cannot be read' 1 'data: cannot read .*/text\.txt: Permission denied' train tiny.yaml
chmod 644 text.txt
mkdir closed && cp text.txt closed && chmod 000 closed
[ "$(id -u)" != 0 ] || chown 65534:65534 closed
refuse 'a text in a folder that cannot be entered' 1 'data: .*closed/text\.txt' train tiny.yaml data=closed/text.txt
refuse 'a run in a folder that cannot be entered' 1 'closed/run: ' eval closed/run
refuse 'records in it' 1 'cannot read closed/run: Permission denied' plot closed/run
mkdir -p data/closed && tr a-z b-za <text.txt >data/closed/text.txt
refuse 'not even where another text has its name in the second place' 1 'data: cannot read closed/text\.txt: Permission denied' train tiny.yaml data=closed/text.txt
refuse 'nor another run' 1 'cannot read closed/config\.yaml: Permission denied' eval closed
refuse 'a tokenizer in it' 1 'cannot read closed/t\.json: Permission denied' train tiny.yaml tokenizer=closed/t.json
refuse 'a folder to import in it' 1 'cannot read closed/model: Permission denied' convert import closed/model runs/bad
chmod 755 closed

# ---- The system refuses threads: the results do not depend on their number
large=(tiny.yaml model.d=64 model.layers=2 batch=8 steps=3)
accept 'four threads' train "${large[@]}" name=four threads=4
run() { "$build/ricci-bounded" $seconds $mebibytes bash -c 'ulimit -u 1; exec "$@"' - "${as_user[@]}" "$build/ricci-$1" "${@:2}" >out 2>err </dev/null; }
accept 'no thread but the first' train "${large[@]}" name=alone threads=4
verdict 'the same weights' "$(cmp runs/{four,alone}/model.safetensors 2>&1)"

echo "$failures failed"
exit $((failures > 0))

#!/usr/bin/env bash
# The disk is full while a checkpoint is written: one clear line, and earlier saves are valid. A full cache does not end training.
#   full_disk.sh build-folder
. "$(dirname "$0")/../programs.sh" "$@"
accept 'a run in one piece' train tiny.yaml name=straight steps=12 checkpoint_every=2
size=$(stat -c %s runs/straight/checkpoints/step-00000012.safetensors)

mkdir full
mount -t tmpfs -o size=$((size * 3 / 1024))k none full 2>/dev/null || needs 'the right to mount a disk'
trap 'umount "$folder/full" "$folder/small"; rm -rf "$folder"' EXIT
mv runs runs_beside && ln -s full runs
refuse 'full disk' 1 'cannot write runs/crowded/[^ ]*: No space left on device' train tiny.yaml name=crowded steps=12 checkpoint_every=2 keep_checkpoints=9
verdict 'what was saved before is there' "$(ls runs/crowded/checkpoints | grep -q . || echo nothing)"
rm -f runs/crowded/checkpoints/step-00000002.safetensors
rm runs && mv runs_beside runs && mv full/* runs
accept 'with room it goes on' train tiny.yaml name=crowded steps=12 checkpoint_every=2
verdict 'to the same end' "$(cmp runs/{straight,crowded}/model.safetensors 2>&1)"

mkdir small && mount -t tmpfs -o size=32k none small
for number in {1..30}; do cat text.txt; done >many.txt
accept 'a text and a cache with room' train tiny.yaml data=many.txt name=roomy
XDG_CACHE_HOME=$PWD/small run train tiny.yaml data=many.txt name=cramped
verdict 'a cache without room' "$([ $? = 0 ] && [ "$(grep -c '' err)" = 1 ] && grep -qE '^warning: cannot write .*/small/ricci/.*: No space left on device.*; the text is not cached: the next run will encode it again$' err || echo no)"
verdict 'is passed over' "$(cmp runs/{roomy,cramped}/model.safetensors 2>&1; [ -d small/ricci ] || echo 'not tried'; ls -A small/ricci | grep -v '^tokenizer-')"
for tokenizer in small/ricci/tokenizer-*; do verdict 'but a tokenizer that fits is complete' "$(diff -r "$tokenizer" "cache/ricci/${tokenizer##*/}" 2>&1)"; done

echo "$failures failed"
exit $((failures > 0))

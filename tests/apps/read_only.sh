#!/usr/bin/env bash
# Folders that cannot be written. Root may write everywhere, so it becomes somebody else.
#   read_only.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"
accept 'a small run' train tiny.yaml name=tiny steps=8 checkpoint_every=4
cp -r runs/tiny kept

as_user=()
if [ "$(id -u)" = 0 ]; then
  as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  chmod 755 "$folder"
  chown -R 65534:65534 cache
fi
"${as_user[@]}" test -x "$build/ricci-train" || needs 'a build folder that other users may read'
run() { timeout 60 "${as_user[@]}" "$build/ricci-$1" "${@:2}" >out 2>err </dev/null; }

chmod -R a-w runs
refuse 'a run folder that is read-only' 1 "cannot write runs/tiny/[^ ]*: .*Permission denied" train tiny.yaml name=tiny steps=16 checkpoint_every=4
verdict 'nothing is lost' "$(diff -r kept runs/tiny 2>&1)"
refuse 'no room for a new folder' 1 'runs/new: cannot be made: Permission denied' train tiny.yaml name=new
accept 'it can be read' eval runs/tiny
chmod -R u+w runs

echo "$failures failed"
exit $((failures > 0))

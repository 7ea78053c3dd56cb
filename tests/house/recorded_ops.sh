#!/usr/bin/env bash
# Every name that is recorded on a tape somewhere has a gradient check, and every check names an op that exists.
#   recorded_ops.sh path/to/ricci-check
set -u
cd "$(dirname "$0")/../.."
recorded=$(grep -rhoE 'record\(\s*"[^"]+"' ops autograd --include='*.cu' --include='*.cpp' --include='*.h' | sed -E 's/.*"(.*)"/\1/' | sort -u)
generic=$(grep -rnE 'record\(\s*[a-z_]+\s*,' ops autograd --include='*.cu' --include='*.cpp' | grep -vE 'record\(\s*"')
checked=$("$1" --list | sort -u)
difference=$(diff <(echo "$recorded") <(echo "$checked"))
[ -z "$generic" ] || { echo "record() with a name this scan cannot read:"; echo "$generic"; exit 1; }
[ -z "$difference" ] || { echo "recorded (<) and checked (>) differ:"; echo "$difference"; exit 1; }
echo "$(echo "$recorded" | wc -l) ops are recorded and checked"

#!/usr/bin/env bash
# Every name that is recorded on a tape somewhere has a gradient check, and every check names an op that exists.
#   recorded_ops.sh path/to/ricci-check
set -u
cd "$(dirname "$0")/../.."
sources=$(find ops autograd -name '*.cu' -o -name '*.cpp' -o -name '*.h')
calls=$(cat $sources | tr '\n' ' ' | grep -oE '[a-z_]*record\( *("[^"]+"|[a-z_]+,)')
recorded=$(echo "$calls" | grep -E '^record\( *"' | sed -E 's/.*"(.*)"/\1/' | sort -u)
generic=$(echo "$calls" | grep -E '^record\( *[a-z_]+,' | grep -vxE 'record\( *op,')  # record itself passes its op on
checked=$("$1" --list | sort -u)
difference=$(diff <(echo "$recorded") <(echo "$checked"))
[ -z "$generic" ] || { echo "record() with a name this scan cannot read:"; echo "$generic"; exit 1; }
[ -z "$difference" ] || { echo "recorded (<) and checked (>) differ:"; echo "$difference"; exit 1; }
echo "$(echo "$recorded" | wc -l) ops are recorded and checked"

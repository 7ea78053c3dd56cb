#!/usr/bin/env bash
# check_probe.py --stored: the check of ricci-probe that needs python3 and its standard library only.
#   stored.sh build-folder
golden=$(cd "$(dirname "$0")" && pwd) || exit 1
. "$golden/../apps/programs.sh" "$@"
command -v python3 >/dev/null || needs python3
python3 "$golden/check_probe.py" --probe "$build/ricci-probe" --stored >out 2>err
verdict 'the stored cases, and errors' "$([ $? = 0 ] && grep -qE '^[0-9]+ of [0-9]+ hold' out || echo 'not all of them hold')"
exit $((failures > 0))

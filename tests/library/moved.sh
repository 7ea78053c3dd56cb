#!/usr/bin/env bash
# The installed programs need neither the source tree nor the build folder: nothing that is installed names them, and with both out of
# sight a run is trained, evaluated, continued, drawn and checked.
#   moved.sh build-folder
. "$(dirname "$0")/../apps/programs.sh" "$@"
root=$(sed -n 's/^ricci_SOURCE_DIR:STATIC=//p' "$build/CMakeCache.txt")
hidden=(unshare --mount)
"${hidden[@]}" true 2>/dev/null || hidden=(unshare --map-root-user --mount)
"${hidden[@]}" mount -t tmpfs none /tmp 2>/dev/null || needs 'the right to mount a file system'
prefix=$folder/prefix
: >out >err
cmake --install "$build" --prefix "$prefix" >out 2>err || verdict 'install' "exit code $?"
verdict 'ricci, and each program' "$(diff <(echo ricci; cd "$root/apps" && ls {run,lab}/*.cpp interop/convert.cpp | sed -E 's|.*/(.*)\.cpp|ricci-\1|' | sort) <(ls "$prefix/bin"))"
verdict 'all of them hold 80 MB at most' "$(find "$prefix" -type f \( -path '*/bin/*' -o -name libricci_programs.so \) -printf '%s\n' | awk '{ sum += $1 } END { if (sum > 80e6) print sum }')"
verdict 'nothing names the source tree or the build folder' "$(grep -rlF -e "$root/" -e "$build/" "$prefix")"

cat >commands.sh <<'END'
set -e
mount -t tmpfs none "$1"
[ "$1" = "$2" ] || [ ! -d "$2" ] || mount -t tmpfs none "$2"
[ ! -e "$1/README.md" ]
bin=$3/bin
"$bin/ricci-train" tiny.yaml data=embedded name=away steps=3
"$bin/ricci-eval" runs/away
"$bin/ricci-generate" runs/away --prompt 'the ' --tokens 5
"$bin/ricci-plot" runs/away -o plot.svg
"$bin/ricci-plan" "$3/share/ricci/configs/quickstart.yaml"
"$bin/ricci-check" --op relu
"$bin/ricci" eval runs/away
END
fault=
"${hidden[@]}" bash commands.sh "$root" "$build" "$prefix" >out 2>err || fault="exit code $?"
[ -s plot.svg ] && [ -s runs/away/model.safetensors ] || fault+=' files are missing'
verdict 'programs with the source tree out of sight' "$fault"

echo "$failures failed"
exit $((failures > 0))

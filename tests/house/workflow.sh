#!/usr/bin/env bash
# The workflow of GitHub: bash reads its commands, and what they, tests/run.sh and apps/install_packages.sh name exists: scripts that can be
# started, presets with their build folders, and packages, where this system is the one of the workflow and has lists of packages.
#   workflow.sh [workflow]
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1
workflow=${1:-.github/workflows/tests.yml}
failures=0
fault() { echo "$1"; failures=$((failures + 1)); }

# The commands: what follows `run:` in its line, or the lines below `run: |` that are further to the right.
commands=$(awk '
  { match($0, /^ */); indent = RLENGTH }
  block && NF && indent <= block { block = 0 }
  block { print }
  match($0, /^ *(- )?run: */) { rest = substr($0, RLENGTH + 1); if (rest ~ /^[|]/) block = indent + 1; else print rest }' "$workflow")
bash -n <<<"$commands" || fault "$workflow: bash cannot read its commands"
! python3 -c 'import yaml' 2>/dev/null || python3 -c 'import sys, yaml; yaml.safe_load(open(sys.argv[1]))' "$workflow" || fault "$workflow: not YAML"

scripts=$({ echo "$commands"; grep -v '^ *#' tests/run.sh; } | grep -oE '(\./)?(apps|tests|\.ci)/[A-Za-z0-9_/.-]*[A-Za-z0-9_]' | sort -u)
for script in $scripts; do [ -f "$script" ] && [ -x "$script" ] || fault "$workflow: $script cannot be started"; done

presets=$(grep -oE 'presets\+?=\([a-z ]+\)' tests/run.sh | sed -E 's/.*\((.*)\)/\1/' | xargs)
for preset in $presets; do
  grep -qE "\"name\": \"$preset\".*\"binaryDir\": \"build-$preset\"" CMakePresets.json ||
    fault "CMakePresets.json: no preset $preset with the folder build-$preset"
done

# Words after `install` and the options of apt-get, and those after the name of the script that installs.
packages=$(grep -oE 'apt-get install.*' <<<"$commands" | tr ' ' '\n' | sed 1,2d | grep -v '^-'
  sed -nE 's/^packages=\((.*) "\$@"\)$/\1/p' apps/install_packages.sh | tr ' ' '\n'
  sed -nE '/^apps\/install_packages\.sh/{:a;/\\$/{N;ba};s/^[^ ]+ (.*) \|\| .*/\1/p}' tests/run.sh | tr -d '\\' | tr -s ' \n' '\n')
image=$(grep -oE 'image: [a-z0-9:.]+' "$workflow" | cut -d ' ' -f 2)
if [ "$image" = "$(. /etc/os-release && echo "$ID:${VERSION_ID:-}")" ] && [ -n "$(apt-cache pkgnames libdnnl 2>/dev/null)" ]; then
  for package in $packages; do [ -n "$(apt-cache show "$package" 2>/dev/null)" ] || fault "$workflow: $image has no package $package"; done
fi

[ "$(wc -l <<<"$commands")" -ge 4 ] && [ "$(wc -w <<<"$scripts")" -ge 3 ] && [ "$(wc -w <<<"$presets")" = 5 ] && [ "$(wc -w <<<"$packages")" -ge 30 ] ||
  fault "only $(wc -l <<<"$commands") lines of commands, $(wc -w <<<"$scripts") scripts, $(wc -w <<<"$presets") presets, $(wc -w <<<"$packages") packages were found"
echo "$(wc -w <<<"$scripts") scripts, $(wc -w <<<"$presets") presets, $(wc -w <<<"$packages") packages, $failures faults"
exit $((failures > 0))

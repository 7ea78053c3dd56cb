#!/usr/bin/env bash
# apps/install_packages.sh where something that it needs is missing: one line on stderr that names the packages, and exit code 1.
set -u
cd "$(dirname "$0")/../.." || exit 1
tools=$(mktemp -d) || exit 1
trap 'rm -rf "$tools"' EXIT
for tool in bash grep; do ln -s "$(command -v $tool)" "$tools/$tool"; done
printf '#!/bin/sh\nexit 1\n' >"$tools/dpkg-query"  # no package is installed
printf '#!/bin/sh\necho 1000\n' >"$tools/id"       # and the user is not root
chmod +x "$tools/dpkg-query" "$tools/id"
failures=0

# expect NAME PATTERN
expect() {
  local code text
  text=$(PATH=$tools "$tools/bash" apps/install_packages.sh 2>&1)
  code=$?
  if [ $code = 1 ] && [ "$(grep -c '' <<<"$text")" = 1 ] && grep -qE "$2" <<<"$text"; then echo "ok      $1"; return; fi
  echo "FAILED  $1: exit code $code, expected 1 and $2"
  echo "$text"
  failures=$((failures + 1))
}

expect 'no apt-get' '^ricci needs these packages, and there is no apt-get to install them with: g\+\+ cmake .*libdnnl-dev$'
printf '#!/bin/sh\nexit 0\n' >"$tools/apt-get"
chmod +x "$tools/apt-get"
expect 'no sudo' '^ricci needs these packages, and there is no sudo; as root: apt-get install g\+\+ cmake .*libdnnl-dev$'
exit $((failures > 0))

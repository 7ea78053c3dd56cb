# For scripts that read the output of programs: programs.sh, and checks of one line each.
#   . outputs.sh build-folder
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/tests/apps/programs.sh" "$@"

# prints NAME PATTERN PROGRAM ARGUMENT ...: as accept, and a line on stdout matches the extended regular expression.
prints() {
  local fault=
  run "${@:3}" || fault="exit code $?"
  [ ! -s err ] || fault+=' expected nothing on stderr'
  grep -qE -e "$2" out || fault+=" expected a line that matches $2"
  verdict "$1" "$fault"
}
# shows NAME PATTERN [FILE]: a line of the file, or of the last stdout, matches the extended regular expression.
shows() { verdict "$1" "$(grep -qE -e "$2" "${3:-out}" || instead grep -nE -e "${2:0:12}" "${3:-out}")"; }
# narrow NAME: no line of the last stdout is wider than a terminal.
narrow() { verdict "$1: 80 columns" "$(LC_ALL=C.UTF-8 grep -nE '.{81}' out)"; }
# same NAME FILE FILE: equal bytes.
same() { verdict "$1" "$(cmp "$2" "$3" 2>&1)"; }
# is NAME EXPECTED COMMAND ...: the output of the command.
is() { verdict "$1" "$("${@:3}" 2>&1 | diff - <(printf '%s\n' "$2"))"; }
# holds NAME COMMAND ...: the command succeeds.
holds() { verdict "$1" "$("${@:2}" >/dev/null 2>&1 || echo "fails: ${*:2}")"; }

# signalled "SIGNAL CALL" PROGRAM ARGUMENT ...: as run, without a bound, and with a signal at a call that changes files (signal_at.cpp).
signalled() { { RICCI_SIGNAL_AT=$1 LD_PRELOAD=$build/libricci-signal-at.so "$build/ricci-$2" "${@:3}" >out 2>err </dev/null; } 2>/dev/null; }

finish() {
  echo "$failures failed"
  exit $((failures > 0))
}

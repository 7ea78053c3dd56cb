#!/usr/bin/env bash
# A file includes its own floor and lower ones only: core -> cuda -> autograd -> ops -> {models, data} -> apps.
# fmt, yaml-cpp and JSON stay out of every header; kernels are launched by launch() alone.
set -u
cd "$(dirname "$0")/../.."
bad=0
complain() { echo "$*"; bad=1; }

allowed() {
  case $1 in
    core) echo core ;;
    cuda) echo 'core|cuda' ;;
    autograd) echo 'core|cuda|autograd' ;;
    ops) echo 'core|cuda|autograd|ops' ;;
    models) echo 'core|cuda|autograd|ops|models' ;;
    data) echo 'core|data' ;;
    apps) echo 'core|cuda|autograd|ops|models|data|apps' ;;
  esac
}
for floor in core cuda autograd ops models data apps; do
  up=$(grep -rnE '^#include "' "$floor" --include='*.h' --include='*.cpp' --include='*.cu' | grep -vE "#include \"($(allowed "$floor"))/")
  [ -z "$up" ] || complain "includes that climb from $floor:"$'\n'"$up"
done

# apps/: lab/ looks at runs and compares them, and may use everything; what makes runs knows nothing of it.
lab=$(grep -rnE '#include "apps/lab/' apps/run apps/terminal apps/interop)
[ -z "$lab" ] || complain "apps/run, apps/terminal or apps/interop includes apps/lab:"$'\n'"$lab"

heavy=$(grep -rnE '#include <(fmt|yaml-cpp|nlohmann)/' core cuda autograd ops models data apps --include='*.h')
[ -z "$heavy" ] || complain "a formatting or parsing library in a header:"$'\n'"$heavy"

foreign=$(grep -rnE '#include <(yaml-cpp|CLI|archive)' core cuda autograd ops models --include='*.h' --include='*.cpp' --include='*.cu')
[ -z "$foreign" ] || complain "the engine needs a library of the apps:"$'\n'"$foreign"

raw=$(grep -rn '<<<' core cuda autograd ops models data apps --include='*.h' --include='*.cpp' --include='*.cu' | grep -v '^cuda/launch.h:')
[ -z "$raw" ] || complain "a kernel launched past launch():"$'\n'"$raw"

ifdefs=$(grep -rnE '^#\s*(if|ifdef|ifndef)' ops --include='*.h' --include='*.cu')
[ -z "$ifdefs" ] || complain "an op that decides for itself which build it is in:"$'\n'"$ifdefs"

long=$(find core cuda autograd ops models data apps tests -name '*.h' -o -name '*.cpp' -o -name '*.cu' | xargs wc -l | awk '$1 > 300 && $2 != "total" { print $2 ": " $1 " lines" }')
[ -z "$long" ] || complain "files of more than 300 lines:"$'\n'"$long"

# A room has at most twelve files, a header and its source counting as one. apps/run and apps/lab themselves list the programs, a file each.
crowded=$(find core cuda autograd ops models data apps tests -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' \) |
  sed -E 's/\.(h|cpp|cu)$//' | sort -u | xargs -n 1 dirname | sort | uniq -c | awk '$1 > 12 && $2 != "apps/run" && $2 != "apps/lab" { print $2 ": " $1 " files" }')
[ -z "$crowded" ] || complain "rooms of more than twelve files:"$'\n'"$crowded"

extra=$(git ls-files 2>/dev/null | cut -d/ -f1 | sort -u | grep -vxE '\..*|core|autograd|ops|cuda|models|data|apps|tests|CMakeLists\.txt|CMakePresets\.json|README\.md|LICENSE')
[ -z "$extra" ] || complain "top level holds more than the house: $extra"
exit $bad

#!/usr/bin/env bash
# A file includes its own floor and lower ones only: core -> cuda -> autograd -> ops -> {models, data} -> apps, and inside apps/
# terminal -> run -> {lab, interop}. fmt, yaml-cpp and JSON stay out of every header; only launch() launches kernels.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0
complain() { echo "$*"; bad=1; }

below='core|cuda|autograd|ops|models|data'
while read -r floor lower; do
  includes=$(grep -rnE '^#include "' "$floor" --include='*.h' --include='*.cpp' --include='*.cu') || complain "$floor includes nothing"
  up=$(grep -vE "#include \"($floor|$lower)/" <<<"$includes")
  [ -z "$up" ] || complain "includes that climb from $floor:"$'\n'"$up"
done <<END
core           core
cuda           core
autograd       core|cuda
ops            core|cuda|autograd
models         core|cuda|autograd|ops
data           core
apps           $below
apps/terminal  $below
apps/run       $below|apps/terminal
apps/lab       $below|apps/terminal|apps/run
apps/interop   $below|apps/terminal|apps/run
END

heavy=$(grep -rnE '#include <(fmt|yaml-cpp|nlohmann)/' core cuda autograd ops models data apps --include='*.h')
[ -z "$heavy" ] || complain "a formatting or parsing library in a header:"$'\n'"$heavy"

foreign=$(grep -rnE '#include <(yaml-cpp|CLI|archive)' core cuda autograd ops models --include='*.h' --include='*.cpp' --include='*.cu')
[ -z "$foreign" ] || complain "the engine needs a library of the apps:"$'\n'"$foreign"

raw=$(grep -rn '<<<' core cuda autograd ops models data apps --include='*.h' --include='*.cpp' --include='*.cu' | grep -v '^cuda/launch.h:')
[ -z "$raw" ] || complain "a kernel launched past launch():"$'\n'"$raw"

ifdefs=$(grep -rnE '^#\s*(if|ifdef|ifndef)' ops --include='*.h' --include='*.cu')
[ -z "$ifdefs" ] || complain "an op that decides for itself which build it is in:"$'\n'"$ifdefs"

extra=$(git ls-files 2>/dev/null | cut -d/ -f1 | sort -u | grep -vxE '\..*|core|autograd|ops|cuda|models|data|apps|tests|CMakeLists\.txt|CMakePresets\.json|README\.md|LICENSE')
[ -z "$extra" ] || complain "top level holds more than the house: $extra"
exit $bad

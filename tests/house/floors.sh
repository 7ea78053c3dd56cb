#!/usr/bin/env bash
# A file includes its own layer and lower ones only: core -> cuda -> autograd -> ops -> {models, data} -> apps, and inside apps/
# terminal -> run -> {lab, interop}. fmt and yaml-cpp stay out of every header, and JSON out of those of kernels; only launch() launches
# kernels. Each mechanism of the system is used in one file.
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

code=(core cuda autograd ops models data apps --include='*.h' --include='*.cpp' --include='*.cu')
heavy=$(grep -rnE '#include <(fmt|yaml-cpp)/' "${code[@]}" | grep '\.h:'; grep -rn '#include "core/json.h"' core cuda autograd ops --include='*.h')
[ -z "$heavy" ] || complain "a formatting or parsing library in a header:"$'\n'"$heavy"

# A word and the one file that may have it; "none" if no file may.
while read -r file word; do
  grep -qF -- "$word" "$file" 2>/dev/null || [ "$file" = none ] || complain "$file does not have '$word'"
  elsewhere=$(grep -rnF -e "$word" "${code[@]}" | grep -v "^$file:")
  [ -z "$elsewhere" ] || complain "'$word' elsewhere than in $file:"$'\n'"$elsewhere"
done <<END
core/json.h              nlohmann
cuda/toolkit/launch.cpp  dlopen(
none                     openat
core/files/file.cpp      fsync
none                     fdatasync
core/files/file.cpp      rename(
none                     getline(std::cin
apps/lab/report/report.cpp  <svg
apps/lab/chart/chart.cpp    <circle
none                        <script
END

foreign=$(grep -rnE '#include <(yaml-cpp|CLI|archive)' core cuda autograd ops models --include='*.h' --include='*.cpp' --include='*.cu')
[ -z "$foreign" ] || complain "the engine needs a library of the apps:"$'\n'"$foreign"

raw=$(grep -rn '<<<' "${code[@]}" | grep -v '^cuda/launch.h:')
[ -z "$raw" ] || complain "a kernel launched past launch():"$'\n'"$raw"

ifdefs=$(grep -rnE '^#\s*(if|ifdef|ifndef)' ops --include='*.h' --include='*.cu')
[ -z "$ifdefs" ] || complain "an op that decides for itself which build it is in:"$'\n'"$ifdefs"

extra=$(git ls-files 2>/dev/null | cut -d/ -f1 | sort -u | grep -vxE '\..*|core|autograd|ops|cuda|models|data|apps|tests|CMakeLists\.txt|CMakePresets\.json|README\.md|LICENSE')
[ -z "$extra" ] || complain "top level holds more than the house: $extra"
exit $bad

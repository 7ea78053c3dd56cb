#!/usr/bin/env bash
# A separate project builds the examples, once with the installed library and once with ricci in a nested folder, and links no library for
# YAML, command lines or archives. The installed programs need neither the source tree nor the build folder.
#   library.sh build-folder     with RICCI_TEST_ALL; without it only the example that trains is built, against the installed library
. "$(dirname "$0")/../apps/programs.sh" "$@"
root=$(sed -n 's/^ricci_SOURCE_DIR:STATIC=//p' "$build/CMakeCache.txt")
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
compiler=$(cached CMAKE_CXX_COMPILER)
# Named only if this build's user named them: an empty list is an error.
architectures=()
[ -z "$(cached CMAKE_CUDA_ARCHITECTURES)" ] || architectures=("-DCMAKE_CUDA_ARCHITECTURES=$(cached CMAKE_CUDA_ARCHITECTURES)")
prefix=$folder/prefix
with_gpus=ON gpus='ON [0-9]+'
if [[ $(cached RICCI_CUDA) = OFF || $(cached CMAKE_CUDA_COMPILER) = *NOTFOUND || -z $(cached CMAKE_CUDA_COMPILER) ]]; then
  with_gpus=OFF gpus='OFF( |$)'
fi
: >out >err

# step NAME COMMAND ...: a command that has to succeed.
step() { "${@:2}" >out 2>&1 || { verdict "$1" "exit code $?" && exit 1; }; }

# says NAME PROGRAM PATTERN: checks its output, and that it ends with 0.
says() {
  local fault=
  "$2" >out 2>err || fault="exit code $?"
  grep -qE "$3" out || fault+=" expected $3"
  verdict "$1" "$fault"
}

# trains NAME FOLDER: the training example learns, and resumes to the same bytes.
trains() {
  local run=("$2/examples/train" "$root/README.md")
  step "$1: train" "${run[@]}" "$2/whole" 200
  verdict "$1: train learns" "$(awk -F'[ ,]+' '/^step/ { loss[$2 + 0] = $4 } END { if (!(loss[200] < loss[100])) print "the losses: " loss[100], loss[200] }' out)"
  mkdir "$2/resumed"
  cp "$2/whole/step-00000100.safetensors" "$2/resumed"
  step "$1: train resumes" "${run[@]}" "$2/resumed" 200
  verdict "$1: train resumes to the same bytes" "$(cmp "$2"/{whole,resumed}/step-00000200.safetensors 2>&1)"
}

# project NAME FOLDER OPTION ...: configures the project outside, builds it in FOLDER, and tries its programs.
project() {
  local name=$1 in=$folder/$2 program needed
  step "$name: configure" cmake -S "$root/tests/library/outside" -B "$in" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_COMPILER=$compiler" \
    "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror" "${architectures[@]}" "${@:3}"
  verdict "$name: the target tells whether it has kernels for GPUs" "$(grep -qE -e "^-- kernels for GPUs: $gpus" out || echo "expected $gpus")"
  everything || { step "$name: two programs" cmake --build "$in" --target CMakeFiles/outside.dir/main.cpp.o train && trains "$name" "$in" && return; }
  step "$name: build" cmake --build "$in" -j 2
  trains "$name" "$in"
  says "$name: a gradient by hand" "$in/outside" '^0 of 12 elements are wrong$'
  says "$name: two_layer_net" "$in/examples/two_layer_net" '^(9[7-9]\.[0-9]|100\.0)% of 289 points are right$'
  says "$name: small_gpt" "$in/examples/small_gpt" '^This is the farmer sowing his corn, that kept the cock that crowed in the morn'
  says "$name: gpt_by_hand" "$in/examples/gpt_by_hand" '^28 gradients and the loss: equal in every bit$'
  step "$name: sorter" "$in/examples/sorter" "$folder/sorting" --rows 2000
  says "$name: own_op" "$in/examples/own_op" '^unit_rows on cuda_emulated: the gradient differs by [0-9]e-(0[789]|1[0-9]) at most$'
  # README.md shows what it prints, except for the last error.
  verdict "$name: look_inside prints what README.md shows" "$("$in/examples/look_inside" 2>&1 | grep -v '^tree_sum: ' | grep . >out
    [ "$(wc -l <out)" -gt 10 ] || echo 'too few lines'; grep -vxF -f "$root/README.md" out)"
  for program in outside examples/two_layer_net examples/small_gpt examples/gpt_by_hand examples/train examples/sorter examples/own_op examples/look_inside; do
    needed=$(readelf -d "$in/$program" | grep NEEDED) || needed='unknown'
    verdict "$name: what $program links" "$(grep -iE 'unknown|yaml|cli11|archive|libz|icu' <<<"$needed")"
  done
}

step 'install' cmake --install "$build" --prefix "$prefix"
verdict 'headers stand in include/ricci alone' "$(find "$prefix/include" -mindepth 1 -maxdepth 1 ! -name ricci)"
verdict 'the package names no library of the programs' "$(grep -rniE 'yaml|cli11|archive' "$prefix"/lib*/cmake "$prefix"/lib/*/cmake 2>/dev/null)"
project 'find_package' found "-DCMAKE_PREFIX_PATH=$prefix" "-DRICCI_EXAMPLES=$prefix/share/ricci/examples"
everything || { echo "$failures failed" && exit $((failures > 0)); }
# Takes the objects of this build. Compiling the engine again would take minutes.
project 'add_subdirectory' inside "-DRICCI_SOURCE=$root" "-DRICCI_EXAMPLES=$root/apps/examples" "-DRICCI_CUDA=$with_gpus" \
  "-DCMAKE_CXX_COMPILER_LAUNCHER=$root/tests/library/reuse.sh;$build" "-DCMAKE_CUDA_COMPILER_LAUNCHER=$root/tests/library/reuse.sh;$build"
verdict 'add_subdirectory: no library of the programs was looked for' "$(grep -iE '^(yaml|cli11|libarchive|icu)[a-z_-]*:' "$folder/inside/CMakeCache.txt")"

# An older or newer version than requested is rejected.
mkdir other && cat >other/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(other LANGUAGES CXX)
find_package(ricci 0.2 REQUIRED)
END
cmake -S other -B other/build "-DCMAKE_PREFIX_PATH=$prefix" >out 2>err && fault='was accepted' || fault=
grep -q 'requested version "0.2"' err || fault+=' expected the version in the message'
verdict 'another version' "$fault"

commands_of_ricci() { grep -rhoE '^const [a-z:]*Command [a-z:]*apps::[a-z]+_command[{]' "$root/apps" | sed 's/.*:://; s/_command.*//'; }
verdict 'ricci, and each program' "$(diff <(echo ricci && commands_of_ricci | sed 's/^/ricci-/' | sort) <(ls "$prefix/bin"))"
verdict 'all of them hold 80 MB at most' "$(find "$prefix" -type f \( -path '*/bin/*' -o -name libricci_programs.so \) -printf '%s\n' | awk '{ sum += $1 } END { if (sum > 80e6) print sum }')"
verdict 'nothing names the source tree or the build folder' "$(grep -rlF -e "$root/" -e "$build/" "$prefix")"
# With both out of sight a run is trained, evaluated, continued, drawn and checked.
hidden=(unshare --mount)
"${hidden[@]}" true 2>/dev/null || hidden=(unshare --map-root-user --mount)
"${hidden[@]}" mount -t tmpfs none /tmp 2>/dev/null || needs 'the right to mount a file system'
cat >commands.sh <<'END'
set -e
mount -t tmpfs none "$1"
[ "$1" = "$2" ] || [ ! -d "$2" ] || mount -t tmpfs none "$2"
[ ! -e "$1/README.md" ]
bin=$3/bin
"$bin/ricci-train" tiny.yaml data=embedded name=away steps=3
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

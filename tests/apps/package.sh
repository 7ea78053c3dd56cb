#!/usr/bin/env bash
# apps/package.sh: in a bare root with only the C and C++ libraries, the programs of the archive write the same bytes as the programs of the
# build. A function that an older system lacks is an error. The archive is for the processor of the build: for a build of the preset arm64,
# qemu runs the programs.
#   package.sh build-folder
# RICCI_ROOTS: folders with other systems for this processor to test, such as the result of `debootstrap --variant=minbase jammy`.
. "$(dirname "$0")/programs.sh" "$@"
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
root=$(cached ricci_SOURCE_DIR)
processor=$(uname -m) tools='' sysroot=/ arm64=()
if [[ $(cached CMAKE_TOOLCHAIN_FILE) = */arm64.cmake ]]; then
  processor=aarch64 tools=aarch64-linux-gnu- sysroot=$root/build-arm64/root arm64=(--arm64)
  export QEMU_LD_PREFIX=$sysroot
  "$build/ricci" --version >out 2>&1 || needs 'qemu-user-static and binfmt-support, which start programs for ARM'
fi
for library in archive z bz2 lzma lz4 zstd; do
  [ -e "$("${tools}g++" --sysroot="$sysroot" -print-file-name=lib$library.a)" ] || needs "lib$library.a"
done
[[ $(cached RICCI_CUDA) = OFF || -z $(cached CMAKE_CUDA_COMPILER) || $(cached CMAKE_CUDA_COMPILER) = *NOTFOUND ]] ||
  needs 'a build without CUDA, whose objects it takes'
inside=(unshare --mount --pid --fork --mount-proc)
"${inside[@]}" --root / true 2>/dev/null || inside=(unshare --map-root-user --mount --pid --fork --mount-proc)
"${inside[@]}" --root / true 2>/dev/null || needs 'the right to change the root folder'
: >out >err

# package: reuses the objects of this build; compiling takes minutes. The preset arm64 names its compiler in a file.
compiler=$(cached CMAKE_CXX_COMPILER)
package() {
  "$root/apps/package.sh" "${arm64[@]}" "$folder/package" ${compiler:+"-DCMAKE_CXX_COMPILER=$compiler"} "-DRICCI_PCH=$(cached RICCI_PCH)" \
    "-DRICCI_UNITY=$(cached RICCI_UNITY)" "-DCMAKE_CXX_COMPILER_LAUNCHER=$root/tests/library/reuse.sh;$build" >out 2>err </dev/null
}
package || { verdict 'package' "exit code $?" && exit 1; }
made=$(sed -nE 's|^(.*/ricci-[0-9.]+-linux-'"$processor"')\.tar\.gz: [0-9]+ MiB$|\1|p' out)
verdict 'it says where the archive is' "$([ -s "$made.tar.gz" ] || shown out)"
commands_of_ricci() { grep -rhoE '^const [a-z:]*Command [a-z:]*apps::[a-z]+_command[{]' "$root/apps" | sed 's/.*:://; s/_command.*//'; }
verdict 'it has the program, and a link for each command' "$(diff <(echo ricci && commands_of_ricci | sed 's/^/ricci-/' | sort) <(ls "$made/bin"))"
verdict 'nothing names the source tree or the build folder' "$(grep -rlF -e "$root/" -e "$build/" -e "$folder/" "$made")"
verdict 'and the licences of what it carries' "$(for name in LICENSE libfmt9 libarchive-dev libicu72 nlohmann-json3-dev; do
  [ -s "$made/share/doc/ricci/$name" ] || echo $name
done)"

# A bare root: the loader and the C and C++ libraries of this system, or of the root for ARM.
loader=$(readelf -l "$build/ricci" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
libraries=lib/$("${tools}g++" -print-multiarch)
mkdir -p "bare${loader%/*}" "bare/$libraries" bare/{tmp,proc,dev}
cp -L "$sysroot$loader" "bare$loader"
for library in libc.so.6 libm.so.6 libstdc++.so.6 libgcc_s.so.1; do
  cp -L "$sysroot/usr/$libraries/$library" "bare/$libraries" 2>/dev/null || cp -L "$sysroot/$libraries/$library" "bare/$libraries"
done
gzip -k text.txt
tar -cjf text.tar.bz2 text.txt
commands=(
  'train tiny.yaml name=one data=text.txt.gz'
  'train tiny.yaml name=resumed data=text.txt.gz steps=1 schedule_steps=2'
  'train runs/resumed steps=2'
  'prepare text.tar.bz2 --tokenizer byte -o shards'
  'tokenize train text.txt --vocab 290 -o words.json'
  'convert export runs/one hf'
  'eval runs/one --json'
)
for command in "${commands[@]}"; do accept "here: $command" $command; done
# The header of shards lists their source files.
outcome() {
  sha256sum runs/{one,resumed}/model.safetensors words.json hf/model.safetensors
  tail -qc +129 shards/shard-*.tokens | sha256sum
}
outcome >expected
verdict 'a resumed run has the bits of a whole one' \
  "$(cmp <(tensors runs/one/model.safetensors) <(tensors runs/resumed/model.safetensors) 2>&1)"
: >out
for system in bare ${RICCI_ROOTS:-}; do
  place=$(mktemp -d -p "$system/tmp") || exit 1
  inner=/tmp/${place##*/}
  tar -xzf "$made.tar.gz" -C "$place"
  cp text.txt.gz text.tar.bz2 text.txt tiny.yaml "$place"
  fault=
  for command in "${commands[@]}"; do
    HOME=$inner XDG_CACHE_HOME=$inner RICCI_DATA=$inner TMPDIR=$inner "${inside[@]}" --root "$system" --wd "$inner" \
      "$inner/${made##*/}/bin/ricci-${command%% *}" ${command#* } >out 2>err || fault+=" $command: exit code $?, $(head -1 err)"
  done
  verdict "in $system" "$fault$(cd "$place" && outcome | diff "$folder/expected" -)"
  rm -rf "$place"
done

mkdir tools
printf '#!/bin/sh\necho "0000 DF *UND* 0000 (GLIBC_2.36) arc4random"\n' >"tools/${tools}objdump"
chmod +x "tools/${tools}objdump"
PATH=$folder/tools:$PATH package && fault='was accepted' || fault=
grep -qxE 'package\.sh: ricci needs arc4random \(GLIBC_2\.36\), which Ubuntu 22\.04 does not have' err || fault+=' another message'
[ ! -e "$made.tar.gz" ] || fault+=' an archive is there'
verdict 'a function of a newer C library' "$fault"

echo "$failures failed"
exit $((failures > 0))

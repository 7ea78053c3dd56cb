# shellcheck shell=bash disable=SC2154,SC2034
# The part build of tests/gpu.sh, which reads this file, and its programs to take along.

# A transfer may date every file anew. Files with the content of the last build get their old date back, so that ninja
# compiles only what changed.
keep_dates() {
  local files=$state/files dates=$state/dates date path
  find CMakeLists.txt README.md core cuda autograd ops models data apps tests .deps -type f 2>/dev/null > "$files"
  touch "$dates"
  paste <(xargs -d '\n' sha256sum < "$files") <(xargs -d '\n' stat -c %.9Y < "$files") |
    awk -F'\t' -v OFS='\t' 'FILENAME != "-" { date[$1] = $2; next }
      { print $1, ($1 in date ? date[$1] : $2) }' "$dates" - > "$dates.new"
  mv "$dates.new" "$dates"
  while IFS=$'\t' read -r path date; do touch -d "@$date" "${path:66}"; done < "$dates"
}

# PTX and oneDNN are left out, because they would be most of the package, and only other GPUs and the CPU need them.
configure() {  # command...: before cmake
  local options=() flags=-Wl,--disable-new-dtags  # a path written so counts for the libraries of libraries, too
  [ ! -d .deps/usr ] || options=(-DCMAKE_PREFIX_PATH="$root/.deps/usr" -DCMAKE_EXE_LINKER_FLAGS="$flags" -DCMAKE_SHARED_LINKER_FLAGS="$flags")
  [ -e "$build/build.ninja" ] || "$@" cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRICCI_CUDA=ON -DRICCI_MPI=OFF \
    -DRICCI_TESTS=ON -DRICCI_WERROR=OFF -DCMAKE_CUDA_ARCHITECTURES="$architecture-real" -DRICCI_DNNL_LIBRARY= "${options[@]}" || return
  grep -q ricci_kernels "$build/build.ninja" || { echo "CMake found no nvcc"; rm "$build/build.ninja"; return 1; }
}

part_build() {
  local programs code began=$SECONDS
  if [ "$bin" != "$build" ]; then
    row configure "programs that were taken along" pass
    row "compile and link" "$(find "$bin" -maxdepth 1 -name 'ricci-*' | wc -l) programs start here" pass
    machine_code
    return
  fi
  keep_dates
  configure limited 200 || { row configure "failed, see build.log" FAIL; return; }
  row configure "$(versions), $(if [ -d .deps/usr ]; then echo .deps; else echo 'system libraries'; fi)" pass
  limited 600 cmake --build "$build" -j "$(nproc)" -- -k 0
  code=$?
  programs=$(find "$build" -maxdepth 1 -type f -name 'ricci-*' | wc -l)
  case $code in
    0) row "compile and link" "$((SECONDS - began)) s, $programs programs" pass ;;
    124 | 137) row "compile and link" "stopped after $((SECONDS - began)) s, run it again" unfinished ;;
    *) row "compile and link" "failed, see build.log; $programs programs are linked" FAIL ;;
  esac
  machine_code
}

machine_code() {
  local programs
  command -v cuobjdump >/dev/null || { row "machine code" "not measured: no cuobjdump" -; return; }
  [ -e "$bin/libricci_programs.so" ] || return
  programs=$(cuobjdump --list-elf "$bin/libricci_programs.so" | grep -oE 'sm_[0-9]+a?' | sort | uniq -c | xargs)
  row "machine code" "${programs:-none}" "$(verdict grep -q "sm_$architecture" <<< "$programs")"
}

# ---- pack
packed=(bench check eval tokenize train tests bench-training bench-attention bench-mixers bench-products bench-scales)
most_megabytes=40

# Libraries that every Linux machine has, or that must be its own, are left out.
libraries_of() {
  ldd "$@" 2> /dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libcuda|libnvidia[a-z-]*|libcublas[A-Za-z]*)\.so'
}

# The tests with the label GPU and their properties, for ctest in the folder of the programs.
write_tests() {
  ctest --test-dir "$build" -L GPU --show-only=json-v1 | "$python" -c '
import json, sys
build = sys.argv[1] + "/"
for test in json.load(sys.stdin)["tests"]:
    words = [word.replace(build, "./") for word in test["command"]]
    print("add_test([=[%s]=] %s)" % (test["name"], " ".join("[=[%s]=]" % word for word in words)))
    for each in test["properties"]:
        if each["name"] != "WORKING_DIRECTORY":
            value = each["value"] if isinstance(each["value"], list) else [each["value"]]
            print("set_tests_properties([=[%s]=] PROPERTIES %s [=[%s]=])" % (test["name"], each["name"], ";".join(map(str, value))))
' "$build"
}

# Every file looks for its libraries in its own folder, because LD_LIBRARY_PATH would give them to PyTorch, too, which needs others. Zeros
# replace the 30 MB of data of ICU, as in apps/package.sh.
gather_libraries() {  # folder
  local data
  mapfile -t libraries < <(LD_LIBRARY_PATH=$build:$root/.deps/usr/lib/x86_64-linux-gnu libraries_of "$1"/*)
  cp -Ln "${libraries[@]}" "$1"
  data=$(basename "$1"/libicudata.so.*)
  echo "extern \"C\" const char icudt${data##*.}_dat[64] = {};" |
    g++ -shared -fPIC -nostdlib -w -x c++ - -Wl,-soname,"$data" -o "$1/$data"
  strip --strip-unneeded "$1"/ricci-* "$1"/*.so*
  patchelf --force-rpath --set-rpath "\$ORIGIN" "$1"/ricci-* "$1"/*.so*
}

# RICCI_BUILD names another build to pack. That may be larger, because it has oneDNN and the kernels of more GPUs.
pack_programs() {
  local to=$build/programs began=$SECONDS card bytes libraries
  apps/install_packages.sh doctest-dev patchelf || return
  if [ -z "${RICCI_BUILD:-}" ]; then
    configure && cmake --build "$build" -j "$(nproc)" --target "${packed[@]/#/ricci-}" ricci-stub-cudart ricci-stub-cublaslt || return
  fi
  rm -rf "$to" "$to.tar.gz" && mkdir -p "$to"
  cp "${packed[@]/#/$build/ricci-}" "$build/libricci_programs.so" "$to" && gather_libraries "$to" || return
  write_tests > "$to/CTestTestfile.cmake"
  sources > "$to/sources"
  git describe --always --dirty --exclude '*' > "$to/commit"
  toolkit_major > "$to/cuda_major" || rm "$to/cuda_major"
  for card in h100 h200; do
    tests/bench/machine_code/step_table.py --estimates "$to/libricci_programs.so" --gpu $card > "$to/estimates.$card" || rm "$to/estimates.$card"
  done
  ! declare -F pack_texts > /dev/null || pack_texts "$to"
  tar -czf "$to.tar.gz" -C "$to" . && rm -r "$to"
  bytes=$(stat -c %s "$to.tar.gz")
  echo "$to.tar.gz: ${#packed[@]} programs, ${#libraries[@]} libraries, $(awk "BEGIN { printf \"%.1f\", $bytes / 1e6 }") MB, $((SECONDS - began)) s"
  if [ -z "${RICCI_BUILD:-}" ] && [ "$bytes" -gt $((most_megabytes * 1000000)) ]; then
    echo "a package of more than $most_megabytes MB cannot be taken along" >&2
    return 1
  fi
}
rehearse_programs() { tests/gpu/rehearse.sh "$build"; }

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

configure() {
  local options=() flags=-Wl,--disable-new-dtags  # a path written so counts for the libraries of libraries, too
  [ ! -d .deps/usr ] || options=(-DCMAKE_PREFIX_PATH="$root/.deps/usr" -DCMAKE_EXE_LINKER_FLAGS="$flags" -DCMAKE_SHARED_LINKER_FLAGS="$flags")
  [ -e "$build/build.ninja" ] || limited 200 cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DRICCI_CUDA=ON -DRICCI_MPI=OFF -DRICCI_TESTS=ON -DRICCI_WERROR=OFF -DCMAKE_CUDA_ARCHITECTURES="$architecture" "${options[@]}" || return
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
  configure || { row configure "failed, see build.log" FAIL; return; }
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
packed=(check train tests bench-training bench-attention bench-mixers bench-products)

# Libraries that every Linux machine has, or that must be its own, are left out.
libraries_of() {
  ldd "$@" 2> /dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libcuda|libnvidia[a-z-]*|libcublas[A-Za-z]*)\.so'
}

# The tests with the label GPU, for ctest in the folder of the programs.
write_tests() {
  ctest --test-dir "$build" -L GPU --show-only=json-v1 | "$python" -c '
import json, sys
for test in json.load(sys.stdin)["tests"]:
    command = test["command"]
    print("add_test([=[%s]=] %s)" % (test["name"], " ".join("[=[%s]=]" % ("./" + word.rsplit("/", 1)[1] if i == 0 else word) for i, word in enumerate(command))))
    for each in test.get("properties", []):
        if each["name"] in ("SKIP_RETURN_CODE", "LABELS"):
            value = each["value"] if not isinstance(each["value"], list) else ";".join(each["value"])
            print("set_tests_properties([=[%s]=] PROPERTIES %s [=[%s]=])" % (test["name"], each["name"], value))
'
}

pack_programs() {
  local to=$build/programs name missing=()
  deadline=$((SECONDS + 100000)) rows=/dev/null bin=$build
  if [ -z "${RICCI_BUILD:-}" ]; then
    configure && cmake --build "$build" -j "$(nproc)" --target ricci_programs "${packed[@]/#/ricci-}" || exit
  fi
  rm -rf "$to" && mkdir -p "$to"
  for name in "${packed[@]}"; do
    if [ -x "$build/ricci-$name" ]; then cp "$build/ricci-$name" "$to"; else missing+=("ricci-$name"); fi
  done
  cp "$build/libricci_programs.so" "$to"
  mapfile -t libraries < <(LD_LIBRARY_PATH=$build:$root/.deps/usr/lib/x86_64-linux-gnu libraries_of "$to"/*)
  for name in "${libraries[@]}"; do [ -e "$to/$(basename "$name")" ] || cp -L "$name" "$to"; done
  strip --strip-unneeded "$to"/ricci-* "$to"/*.so*
  write_tests > "$to/CTestTestfile.cmake"
  sources > "$to/sources"
  toolkit_major > "$to/cuda_major" || rm "$to/cuda_major"
  tar -czf "$to.tar.gz" -C "$to" . && rm -r "$to"
  echo "$to.tar.gz: ${#packed[@]} programs, ${#libraries[@]} libraries, $(stat -c %s "$to.tar.gz" | awk '{ printf "%.1f MiB", $1 / 1048576 }')"
  [ ${#missing[@]} = 0 ] || { echo "not built: ${missing[*]}"; exit 1; }
}

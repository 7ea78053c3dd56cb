# shellcheck shell=bash disable=SC2154
# The words pack and rehearse of tests/gpu.sh, which reads this file.

packed=(ricci ricci-tests ricci-bench-{training,attention,mixers,products})
links=(bench check eval tokenize train)
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

# Every file looks for its libraries in its own folder. LD_LIBRARY_PATH would also give them to PyTorch, and that needs others. Zeros
# replace the 30 MB of data of ICU, as in apps/package.sh.
gather_libraries() {  # folder
  local data
  mapfile -t libraries < <(LD_LIBRARY_PATH=$build libraries_of "$1"/*)
  cp -Ln "${libraries[@]}" "$1"
  data=$(basename "$1"/libicudata.so.*)
  echo "extern \"C\" const char icudt${data##*.}_dat[64] = {};" |
    g++ -shared -fPIC -nostdlib -w -x c++ - -Wl,-soname,"$data" -o "$1/$data"
  strip --strip-unneeded "$1"/ricci* "$1"/*.so*
  patchelf --force-rpath --set-rpath "\$ORIGIN" "$1"/ricci* "$1"/*.so*
}

# PTX and oneDNN are left out: they would be most of the package. Only other GPUs and ricci-bench-products --peer need them.
build_programs() {
  [ -e "$build/build.ninja" ] || cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRICCI_CUDA=ON -DRICCI_MPI=OFF -DRICCI_TESTS=ON \
    -DCMAKE_CUDA_ARCHITECTURES="$architecture-real" -DRICCI_DNNL_LIBRARY= || return
  cmake --build "$build" -j "$(nproc)" --target "${packed[@]}" ricci-stub-cudart ricci-stub-cublaslt
}

# RICCI_BUILD names a different build to pack. It can be larger, with oneDNN and the kernels of more GPUs.
pack_programs() {
  local to=$build/programs began=$SECONDS bytes libraries name
  apps/install_packages.sh doctest-dev patchelf || return
  [ -n "${RICCI_BUILD:-}" ] || build_programs || return
  rm -rf "$to" "$to.tar.gz" && mkdir -p "$to"
  cp "${packed[@]/#/$build/}" "$build/libricci_programs.so" "$to" && gather_libraries "$to" || return
  for name in "${links[@]}"; do ln -s ricci "$to/ricci-$name"; done
  write_tests > "$to/CTestTestfile.cmake"
  sources > "$to/sources"
  git describe --always --dirty --exclude '*' > "$to/commit"
  toolkit_major > "$to/cuda_major" || rm "$to/cuda_major"
  pack_texts "$to"
  tar -czf "$to.tar.gz" -C "$to" . && rm -r "$to"
  bytes=$(stat -c %s "$to.tar.gz")
  echo "$to.tar.gz: ${#packed[@]} programs, ${#libraries[@]} libraries, $(awk "BEGIN { printf \"%.1f\", $bytes / 1e6 }") MB, $((SECONDS - began)) s"
  if [ -z "${RICCI_BUILD:-}" ] && [ "$bytes" -gt $((most_megabytes * 1000000)) ]; then
    echo "a package of more than $most_megabytes MB cannot be taken along" >&2
    return 1
  fi
}
rehearse_programs() { tests/gpu/rehearse.sh "$build"; }

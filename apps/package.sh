#!/usr/bin/env bash
# Makes an archive of the CPU-only programs, to run without installation on Debian 12, Ubuntu 22.04 or later.
# This script must be run on Debian 12. The archive is for the processor of the machine, x86_64 or aarch64 (64-bit ARM).
#   package.sh [--arm64] [FOLDER [option of cmake ...]]   builds in FOLDER; in build-package-PROCESSOR if none is given. --arm64 builds for
#                                                         aarch64 on any machine
# Writes FOLDER/ricci-VERSION-linux-PROCESSOR.tar.gz with all libraries except the C and C++ libraries of the system. Error: a file needs
# later versions of these two than Ubuntu 22.04 has.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
export LC_ALL=C
processor=$(uname -m) tools='' root=/ toolchain=()
if [ "${1:-}" = --arm64 ]; then
  shift
  [ "$processor" = aarch64 ] || tools=aarch64-linux-gnu-
  processor=aarch64
fi
build=${1:-$(dirname "$0")/../build-package-$processor}
mkdir -p "$build/static"
build=$(cd "$build" && pwd)
cd "$(dirname "$0")/.."
static_packages=(libbz2-dev liblzma-dev liblz4-dev libzstd-dev)
apps/install_packages.sh "${static_packages[@]}" binutils
if [ -n "$tools" ]; then
  apps/install_packages.sh --arm64 "${static_packages[@]}"
  root=$PWD/build-arm64/root toolchain=(--toolchain apps/arm64.cmake)
fi
compile() { "${tools}g++" --sysroot="$root" "$@"; }
found() { compile -print-file-name="$1"; }

# ---- A static libarchive (the shared one needs a later C library)
# Debian compiles static libraries for programs. In a shared library they can use functions of the C library but none of its variables, so
# libbz2 gets its own variables for stdin, stdout and stderr.
static=("$(found libarchive.a)" "$(found libbz2.a)" "$(found liblzma.a)" "$(found liblz4.a)" "$(found libzstd.a)" "$(found libz.a)")
bzip2=$build/static/libbz2.a
"${tools}objcopy" --redefine-sym stdin=bz2_stdin --redefine-sym stdout=bz2_stdout --redefine-sym stderr=bz2_stderr "${static[1]}" "$bzip2"
printf '#include <cstdio>\nFILE *bz2_stdin = stdin, *bz2_stdout = stdout, *bz2_stderr = stderr;\n' |
  compile -O1 -fPIC -x c++ -c - -o "$build/static/bz2_files.o"
"${tools}ar" qs "$bzip2" "$build/static/bz2_files.o"
echo "INPUT(${static[0]} $bzip2 ${static[*]:2})" >"$build/static/libarchive.a"

# ---- The programs
cmake -S . -B "$build" -G Ninja "${toolchain[@]}" -DCMAKE_BUILD_TYPE=Release -DRICCI_CUDA=OFF -DRICCI_MPI=OFF -DCMAKE_INSTALL_LIBDIR=lib \
  "-DLibArchive_LIBRARY=$build/static/libarchive.a" "-DZLIB_LIBRARY=$(found libz.a)" \
  -DCMAKE_SHARED_LINKER_FLAGS=-Wl,--exclude-libs,ALL -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags "${@:2}" >/dev/null
cmake --build "$build"
name=ricci-$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")-linux-$processor
made=$build/$name
rm -rf "$made" "$made.tar.gz"
cmake --install "$build" --prefix "$made" --strip >/dev/null
rm -r "$made"/{include,lib/cmake,lib/libricci.a,share/ricci/examples}  # the library for other projects

# ---- The remaining shared libraries, and all licences
carried=()
carry() {  # FILE ...: copies the libraries that the files need, and the libraries that these need
  local library
  for library in $("${tools}readelf" -d "$@" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    [[ ! $library =~ ^(libc|libm|libstdc\+\+|libgcc_s|ld-linux-.*)\.so ]] || continue
    [ ! -e "$made/lib/$library" ] || continue
    cp -L "$(found "$library")" "$made/lib"
    carried+=("$library")
    carry "$made/lib/$library"
  done
}
carry "$made/bin/ricci" "$made/lib/libricci_programs.so"
# Zeros replace ICU's 30 MB of data. ricci uses only properties and normal forms of characters, and libicuuc contains those.
data=$(basename "$made"/lib/libicudata.so.*)
echo "extern \"C\" const char icudt${data##*.}_dat[64] = {};" |
  compile -shared -fPIC -nostdlib -w -x c++ - -Wl,-soname,"$data" -o "$made/lib/$data"
mkdir -p "$made/share/doc/ricci"
cp LICENSE "$made/share/doc/ricci"
# This machine has the same packages as the root for ARM; only here dpkg knows their files.
for file in "${carried[@]/#/*-linux-gnu/}" "${static[@]/#*\//*-linux-gnu/}" /usr/include/{nlohmann/json.hpp,CLI/CLI.hpp,xxhash.h}; do
  package=$(dpkg-query -S "$file" | cut -d : -f 1 | sort -u)
  cp "$root/usr/share/doc/$package/copyright" "$made/share/doc/ricci/$package"
done

too_new='\*UND\*.*\((GLIBC_2\.(3[6-9]|[4-9][0-9])|GLIBCXX_3\.4\.(3[1-9]|[4-9][0-9]))\)'
for file in "$made"/bin/* "$made"/lib/*; do
  needed=$("${tools}objdump" -T "$file" | grep -E "$too_new" | awk 'NR == 1 { print $NF, $(NF - 1) }') || true
  [ -z "$needed" ] || { echo "package.sh: ${file##*/} needs $needed, which Ubuntu 22.04 does not have" >&2; exit 1; }
done
tar -C "$build" --owner=0 --group=0 --sort=name -czf "$made.tar.gz" "$name"
echo "$made.tar.gz: $(($(stat -c %s "$made.tar.gz") / 1048576)) MiB"

#!/usr/bin/env bash
# Fills .deps/ with the libraries ricci is built with, for a machine that has compilers and no internet. Runs on
# Debian 12 (apt-get, dpkg-deb, ar, objdump) and installs nothing. In a copy of the tree that has .deps/,
#   cmake -S . -B build -DCMAKE_PREFIX_PATH="$PWD/.deps/usr" -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags
# finds them before the system's, and the programs run from the build folder: CMake writes the path of .deps into them,
# and with that flag the path also counts for the library that libdnnl needs.
#   tests/fetch_deps.sh          fetches nothing when .deps/ holds the packages listed here
# The tree and .deps/ travel together: what both hold is printed, and above 56 MiB it is an error.
# libarchive becomes one static library, with the compression libraries in it; libicuuc becomes a static one, too. The others
# stay shared, as Debian's CMake files name the shared ones. .deps/ holds no symbolic links: a transfer may drop them, or copy what they point to.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
export LC_ALL=C
cd "$(dirname "$0")/.."
most_mib=56
packages=(libfmt-dev libfmt9 libyaml-cpp-dev libyaml-cpp0.7 nlohmann-json3-dev libcli11-dev doctest-dev
          libdnnl-dev libdnnl2 ocl-icd-libopencl1 libarchive-dev zlib1g-dev libxxhash-dev)
# Only the properties of characters and their normal forms are used of ICU, which are in libicuuc itself: its 30 MB of data, of
# languages, stay behind, and an empty object stands for them.
unicode=libicu-dev
# Only their static libraries are taken.
compression=(libbz2-dev liblzma-dev liblz4-dev libzstd-dev)

mib() { echo $((($1 + 1048575) / 1048576)); }  # of bytes, rounded up

# Files of the tree that travel: those that git knows or does not ignore; without git, the floors.
tree_bytes() {
  if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard
  else
    find CMakeLists.txt README.md core cuda autograd ops models data apps tests -type f -print0
  fi | { xargs -0 -r stat -c %s 2>/dev/null || true; } | awk '{ sum += $1 } END { printf "%.0f", sum }'
}

# folder: says how large it and the tree are. False: together they are too large.
fits() {
  local deps tree
  deps=$(find "$1" -type f -printf '%s\n' | awk '{ sum += $1 } END { printf "%.0f", sum }') tree=$(tree_bytes)
  echo ".deps: $(mib "$deps") MiB, the tree: $(mib "$tree") MiB, together $(mib $((deps + tree))) MiB of at most $most_mib MiB"
  [ $((deps + tree)) -le $((most_mib * 1048576)) ] || { echo "fetch_deps: too large to carry" >&2; return 1; }
}

packages+=("$unicode")
wanted=$(printf '%s\n' "${packages[@]}" "${compression[@]}" | sort)
if [ "$(cut -d_ -f1 .deps/packages.txt 2>/dev/null)" = "$wanted" ]; then
  echo ".deps is complete (remove it to fetch it again)"
  fits .deps
  exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/debs" "$work/tree" "$work/static"
(cd "$work/debs" && apt-get -q -o APT::Sandbox::User=root download "${packages[@]}" "${compression[@]}") ||
  { echo "apt-get did not get them all: the list is Debian 12's, and 'apt-get update' may be due" >&2; exit 1; }
for package in "${packages[@]}"; do dpkg-deb -x "$work/debs/$package"_*.deb "$work/tree"; done
for package in "${compression[@]}"; do dpkg-deb -x "$work/debs/$package"_*.deb "$work/static"; done
libraries=$(dirname "$(find "$work/tree/usr/lib" -name libarchive.a)")
static=$(dirname "$(find "$work/static/usr/lib" -name libbz2.a)")

# libarchive.a and what its filters need, as one archive. Formats such as xar would need more; no text is one.
rm -f "$libraries"/libarchive.so* "$libraries"/libz.so*  # static ones are left
ar -M <<MRI
CREATE $work/libarchive.a
ADDLIB $libraries/libarchive.a
ADDLIB $libraries/libz.a
ADDLIB $static/libbz2.a
ADDLIB $static/liblzma.a
ADDLIB $static/liblz4.a
ADDLIB $static/libzstd.a
SAVE
END
MRI
mv "$work/libarchive.a" "$libraries/libarchive.a"

# libicuuc.a with 64 zeros in the place of ICU's data.
data=$(objdump -t "$libraries/libicuuc.a" 2>/dev/null | grep -oE 'icudt[0-9]+_dat' | head -1)
head -c 64 /dev/zero > "$work/data"
(cd "$work" && objcopy -I binary -O elf64-x86-64 --rename-section .data=.rodata --redefine-sym _binary_data_start="$data" --strip-symbol=_binary_data_end \
  --strip-symbol=_binary_data_size data icudata.o)
mv "$libraries/libicuuc.a" "$work/libicuuc.a"
ar q "$work/libicuuc.a" "$work/icudata.o"
rm -rf "$libraries"/libicu* "$libraries/icu" "$work"/tree/usr/{bin,sbin,lib/icu,share/icu}
mv "$work/libicuuc.a" "$libraries"
# Of its headers those that data/ includes, and what they include.
headers=$(find "$work/tree/usr/include" -path '*/unicode' -type d)
mapfile -t wanted_headers < <(grep -rhoE '#include <unicode/[a-z0-9]+\.h' data | sed 's/.*unicode.//' | sort -u)
for ((i = 0; i < ${#wanted_headers[@]}; ++i)); do
  while read -r header; do
    [[ " ${wanted_headers[*]} " == *" $header "* ]] || wanted_headers+=("$header")
  done < <(grep -hoE '#\s*include "unicode/[a-z0-9_]+\.h' "$headers/${wanted_headers[i]}" | sed 's/.*unicode.//')
done
for header in "$headers"/*; do [[ " ${wanted_headers[*]} uvernum.h " == *" ${header##*/} "* ]] || rm "$header"; done

# A shared library is one file, called what the loader looks for; its other names are linker scripts that name it.
mapfile -t names < <(find "$libraries" -maxdepth 1 -name '*.so*' -printf '%f\n')
mkdir "$work/shared"
find "$libraries" -maxdepth 1 -name '*.so*' -type f -exec mv -t "$work/shared" {} +
find "$libraries" -maxdepth 1 -name '*.so*' -type l -delete
declare -A file_of
for real in "$work/shared"/*; do
  loaded=$(objdump -p "$real" | awk '$1 == "SONAME" { print $2 }')
  name=${real##*/}
  file_of[${name%%.so*}]=$loaded
  mv "$real" "$libraries/$loaded"
done
for name in "${names[@]}"; do
  [ -e "$libraries/$name" ] || echo "INPUT(${file_of[${name%%.so*}]})" > "$libraries/$name"
done

rm -rf "$work"/tree/usr/share/{doc,doc-base,man,lintian,pkgconfig} \
       "$libraries"/{pkgconfig,cmake/dnnl,libyaml-cpp.a}
find "$work/tree" -type l -delete
(cd "$work/debs" && printf '%s\n' *.deb | sort -t_ -k1,1) > "$work/tree/packages.txt"
# Symbols for debuggers stay behind. (A text file among the libraries is a linker script.)
find "$work/tree" -name '*.so.*' -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF && strip --strip-unneeded "$1"' _ {} \;
strip --strip-debug "$libraries/libarchive.a" "$libraries/libicuuc.a"
fits "$work/tree"
rm -rf .deps
mv "$work/tree" .deps
chmod 755 .deps
echo ".deps holds $(wc -l < .deps/packages.txt) packages"

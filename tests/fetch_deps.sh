#!/usr/bin/env bash
# Fills .deps/ with the libraries ricci is built with, for a machine that has compilers and no internet. Runs on
# Debian 12 (apt-get, dpkg-deb, ar, objdump) and installs nothing. In a copy of the tree that has .deps/,
#   cmake -S . -B build -DCMAKE_PREFIX_PATH="$PWD/.deps/usr" -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags
# finds them before the system's, and the programs run from the build folder: CMake writes the path of .deps into them,
# and with that flag the path also counts for the library that libdnnl needs.
#   tests/fetch_deps.sh          does nothing when .deps/ holds the packages listed here
# libarchive becomes one static library, with the compression libraries in it. The others stay shared, as Debian's CMake
# files name the shared ones. .deps/ holds no symbolic links: a transfer may drop them, or copy what they point to.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
export LC_ALL=C
cd "$(dirname "$0")/.."
most_mib=64
packages=(libfmt-dev libfmt9 libyaml-cpp-dev libyaml-cpp0.7 nlohmann-json3-dev libcli11-dev doctest-dev
          libdnnl-dev libdnnl2 ocl-icd-libopencl1 libarchive-dev)
# Only their static libraries are taken.
compression=(zlib1g-dev libbz2-dev liblzma-dev liblz4-dev libzstd-dev)

wanted=$(printf '%s\n' "${packages[@]}" "${compression[@]}" | sort)
if [ "$(cut -d_ -f1 .deps/packages.txt 2>/dev/null)" = "$wanted" ]; then
  echo ".deps is complete (remove it to fetch it again)"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/debs" "$work/tree" "$work/static"
(cd "$work/debs" && apt-get -q -o APT::Sandbox::User=root download "${packages[@]}" "${compression[@]}") ||
  { echo "apt-get did not get them all: the list is Debian 12's, and 'apt-get update' may be due" >&2; exit 1; }
for package in "${packages[@]}"; do dpkg-deb -x "$work/debs/$package"_*.deb "$work/tree"; done
for package in "${compression[@]}"; do dpkg-deb -x "$work/debs/$package"_*.deb "$work/static"; done
libraries=$(dirname "$(find "$work/tree/usr/lib" -name libarchive.a)")
static=$(dirname "$(find "$work/static/usr/lib" -name libz.a)")

# libarchive.a and what its filters need, as one archive. Formats such as xar would need more; no text is one.
rm -f "$libraries"/libarchive.so*
ar -M <<MRI
CREATE $work/libarchive.a
ADDLIB $libraries/libarchive.a
ADDLIB $static/libz.a
ADDLIB $static/libbz2.a
ADDLIB $static/liblzma.a
ADDLIB $static/liblz4.a
ADDLIB $static/libzstd.a
SAVE
END
MRI
mv "$work/libarchive.a" "$libraries/libarchive.a"

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
mib=$(du -sm --apparent-size "$work/tree" | cut -f1)
if [ "$mib" -gt "$most_mib" ]; then
  echo ".deps would hold $mib MiB, more than $most_mib" >&2
  exit 1
fi
rm -rf .deps
mv "$work/tree" .deps
chmod 755 .deps
echo ".deps: $mib MiB from $(wc -l < .deps/packages.txt) packages"

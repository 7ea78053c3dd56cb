#!/usr/bin/env bash
# Installs the Debian packages that the build needs; does nothing if all are installed.
#   install_packages.sh [more packages]
#   install_packages.sh --arm64 [more packages]   to build for 64-bit ARM on another processor (cmake --preset arm64): installs the cross
#                                                 compiler and qemu, and extracts the libraries for ARM into build-arm64/root
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
arm64=
[ "${1:-}" != --arm64 ] || { arm64=1 && shift; }
tools=(g++ cmake ninja-build)
libraries=(libfmt-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libarchive-dev zlib1g-dev libicu-dev libxxhash-dev "$@")
packages=("${tools[@]}" "${libraries[@]}")
[ -z "$arm64" ] || packages=("${tools[@]}" g++-aarch64-linux-gnu mmdebstrap qemu-user-static binfmt-support)
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    echo "ricci needs these packages, but apt-get was not found: ${missing[*]}" >&2
    exit 1
  fi
  if [ ${#as_root[@]} -gt 0 ] && ! command -v sudo >/dev/null; then
    echo "ricci needs these packages, but sudo was not found; as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  echo "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
[ -n "$arm64" ] || exit 0

# Registers qemu as the interpreter of programs for ARM. Containers without privileges cannot.
binfmt=/proc/sys/fs/binfmt_misc
if [ ! -e $binfmt/qemu-aarch64 ]; then
  [ -e $binfmt/register ] || "${as_root[@]}" mount -t binfmt_misc binfmt_misc $binfmt 2>/dev/null || true
  "${as_root[@]}" update-binfmts --enable qemu-aarch64 >/dev/null 2>&1 || true
fi
root=$(dirname "$0")/../build-arm64/root
before=$(cat "$root/extracted" 2>/dev/null) || true
extracted=$(printf '%s\n' $before libc6-dev libstdc++-12-dev "${libraries[@]}" | sort -u | xargs)
[ "$extracted" != "$before" ] || exit 0
echo "extracting into build-arm64/root: $extracted"
"${as_root[@]}" rm -rf "$root"
mkdir -p "${root%/root}"
"${as_root[@]}" mmdebstrap --quiet --variant=extract --architectures=arm64 "--include=${extracted// /,}" \
  "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" >/dev/null
# qemu looks for every file in the root first, and only this machine has devices.
"${as_root[@]}" rm -rf "$root"/{dev,tmp}
# Links with absolute targets, such as libm.so, must stay inside the root.
find "$root" -lname '/*' | while read -r link; do "${as_root[@]}" ln -sfrn "$root$(readlink "$link")" "$link"; done
echo "$extracted" | "${as_root[@]}" tee "$root/extracted" >/dev/null

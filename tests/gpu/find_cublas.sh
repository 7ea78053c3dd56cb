#!/usr/bin/env bash
# Prints the folders that LD_LIBRARY_PATH needs for a program to find cuBLASLt, joined by ":"; an empty line if it needs none. Exit code 1,
# with nothing printed: the library is nowhere.
#   tests/gpu/find_cublas.sh MAJOR       the major version of the toolkit that the program was built with: 12, 13
# Searched where the loader looks, in the toolkit (where ricci looks by itself), and in PyTorch's pip packages:
# nvidia/cublas/lib (nvidia-cublas-cu12), nvidia/cu13/lib (nvidia-cublas), torch/lib.
set -uo pipefail
file=libcublasLt.so.${1:?major version}
ld_library_path=${LD_LIBRARY_PATH:-} python=${RICCI_PYTHON:-python3}

for folder in ${ld_library_path//:/ }; do [ ! -e "$folder/$file" ] || { echo; exit; }; done
if ldconfig -p 2>/dev/null | grep -F "$file " >/dev/null; then echo; exit; fi
if nvcc=$(command -v nvcc); then
  toolkit=$(dirname "$(dirname "$(realpath "$nvcc")")")
  for folder in "$toolkit"/{lib64,lib,targets/*/lib}; do [ ! -e "$folder/$file" ] || { echo; exit; }; done
fi
# Other libraries of the packages are next to it. It loads some of them by name.
"$python" - "$file" <<'PYTHON'
import pathlib
import sys

for site in dict.fromkeys(map(pathlib.Path, sys.path)):
    libraries = sorted(site.glob("nvidia/*/lib")) + [site / "torch" / "lib"]
    home = next((folder for folder in libraries if (folder / sys.argv[1]).exists()), None)
    if home:
        print(":".join(str(folder) for folder in [home] + [folder for folder in libraries if folder != home and folder.is_dir()]))
        sys.exit()
sys.exit(1)
PYTHON

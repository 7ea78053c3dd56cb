#!/usr/bin/env bash
# Runs before a compiler: what is compiled for a target of ricci's own is taken from BUILD, which has compiled the same files; all else
# is compiled. For ricci itself, and projects that have it in a folder ricci/. A group of files is the same where its list of files is.
# Kernels are in the folder of their sources, which ricci itself calls `__`, as they are one folder up.
#   reuse.sh BUILD COMPILER ARGUMENT ...
build=$1
shift
object=
for ((i = 1; i < $#; ++i)); do [ "${!i}" != -o ] || { next=$((i + 1)) && object=${!next}; }; done
root=${0%/tests/library/reuse.sh} made=
[[ ! $object =~ ^((.*/)?ricci/)?(.*CMakeFiles/ricci.*)$ ]] || made=$build/${BASH_REMATCH[3]/".dir$root/"/.dir/__/}
if [ -n "$made" ] && [ -e "$made" ]; then
  [[ $object = */Unity/* ]] && ! cmp -s "${made%.o}" "${object%.o}" || exec cp "$made" "$object"
fi
exec "$@"

#!/usr/bin/env bash
# Runs before a compiler: objects of ricci's own targets are taken from BUILD, compiled from the same files; everything else is compiled.
# For ricci itself, and projects with ricci in a folder ricci/. A group of files is equal if its list of files is. Kernels are in the folder
# of their sources; ricci itself calls it `__`, one folder up.
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

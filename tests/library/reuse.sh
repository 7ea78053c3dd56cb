#!/usr/bin/env bash
# Runs before a compiler: what is compiled for a target of ricci's own is taken from BUILD, which has compiled the same files; all else
# is compiled. For ricci itself, and projects that have it in a folder ricci/. A group of files is the same where its list of files is.
#   reuse.sh BUILD COMPILER ARGUMENT ...
build=$1
shift
object=
for ((i = 1; i < $#; ++i)); do [ "${!i}" != -o ] || { next=$((i + 1)) && object=${!next}; }; done
if [[ $object =~ ^((.*/)?ricci/)?(.*CMakeFiles/ricci.*)$ && -e $build/${BASH_REMATCH[3]} ]]; then
  made=$build/${BASH_REMATCH[3]}
  [[ $object = */Unity/* ]] && ! cmp -s "${made%.o}" "${object%.o}" || exec cp "$made" "$object"
fi
exec "$@"

#!/usr/bin/env bash
# In front of a compiler: what is compiled for a target of ricci's own is taken from BUILD, which has compiled the same files; all else
# is compiled. For projects that have ricci in a folder ricci/. A group of files is the same where its list of files is.
#   reuse.sh BUILD COMPILER ARGUMENT ...
build=$1
shift
object=
for ((i = 1; i < $#; ++i)); do [ "${!i}" != -o ] || { next=$((i + 1)) && object=${!next}; }; done
if [[ $object =~ ^(.*/)?ricci/(.*CMakeFiles/ricci_.*)$ && -e $build/${BASH_REMATCH[2]} ]]; then
  made=$build/${BASH_REMATCH[2]}
  [[ $object = */Unity/* ]] && ! cmp -s "${made%.o}" "${object%.o}" || exec cp "$made" "$object"
fi
exec "$@"

#!/usr/bin/env bash
# ricci lists the programs as they describe themselves, and starts them: with their words, their exit codes and what they print.
#   front_door.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"
root=$(sed -n 's/^ricci_SOURCE_DIR:STATIC=//p' "$build/CMakeCache.txt")

# door WORD ...: as run, of ricci itself.
door() { "$build/ricci-bounded" $seconds $mebibytes "$build/ricci" "$@" >out 2>err </dev/null; }

# expect NAME CODE PATTERN WORD ...: the exit code, and one line on stderr, or none where the pattern is empty.
expect() {
  local name=$1 code=$2 pattern=$3 got fault=
  shift 3
  door "$@"
  got=$?
  [ "$got" = "$code" ] || fault="exit code $got, expected $code"
  [ "$(grep -c '' err)" = "$([ -z "$pattern" ] && echo 0 || echo 1)" ] || fault+=' another number of lines on stderr'
  grep -qE -e "$pattern" err || [ -z "$pattern" ] || fault+=" stderr does not match $pattern"
  verdict "$name" "$fault"
}

expect 'the list' 0 ''
verdict 'every program, and no other' "$(diff <(awk '{ print $1 }' out | sort) <(cd "$root/apps" && ls {run,lab}/*.cpp interop/convert.cpp | sed -E 's|.*/(.*)\.cpp|\1|' | sort))"
missing=
while read -r name summary; do
  [ "$summary" = "$("$build/ricci-$name" --help | head -n 1)" ] && [ -n "$summary" ] || missing+=" $name"
done <out
verdict 'each in its own words' "$missing"
cp out list
for word in help --help; do
  expect "ricci $word" 0 '' $word
  verdict 'it tells the usage and the programs' "$(grep -q '^ricci PROGRAM' out || echo no usage; grep -vxF -f out list)"
done
expect 'the version' 0 '' --version
verdict 'is that of the programs' "$(diff <(sed 's/^ricci /ricci-plan /' out) <("$build/ricci-plan" --version))"

expect 'the help of a program' 0 '' help train
verdict 'is its own' "$(diff out <("$build/ricci-train" --help))"
expect 'options of a program are its own' 0 '' train --help
verdict 'and so is its help' "$(diff out <("$build/ricci-train" --help))"
expect 'a run' 0 '' train tiny.yaml name=door
verdict 'trains' "$([ -s runs/door/model.safetensors ] || echo 'no model')"
expect 'words with blanks and dashes' 0 '' generate runs/door --prompt 'the quick' --tokens 1
expect 'an error of a program' 1 '^ricci-train: .*none\.yaml: No such file' train none.yaml
expect 'a mistake in the usage of a program' 2 '^ricci-train: .*--frob' train --frob

expect 'an unknown program' 2 "^ricci: no program 'trian', the nearest is 'train' \(--help lists the options\)$" trian run.yaml
expect 'nothing that is near' 2 "^ricci: no program 'frobnicate' \(--help" frobnicate
expect 'the help of an unknown program' 2 "^ricci: no program 'plit', the nearest is 'plot'" help plit
expect 'an unknown option' 2 "^ricci: .*--frob" --frob
expect 'a file' 2 "^ricci: no program 'tiny\.yaml'" tiny.yaml

# Alone in a folder it has nothing to start.
mkdir alone && cp "$build/ricci" alone
LD_LIBRARY_PATH=$build alone/ricci train >out 2>err </dev/null
verdict 'a program that does not stand beside it' "$([ $? = 1 ] && grep -qE '^ricci: .*/alone/ricci-train: No such file or directory$' err || echo 'another end')"

echo "$failures failed"
exit $((failures > 0))

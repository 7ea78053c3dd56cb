#!/usr/bin/env bash
# The puzzles of apps/tour: without its solution each fails with the line in its text, with it each passes.
#   puzzles.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"

for program in puzzles-solved puzzles; do
  run $program
  verdict "$program: the exit code" "$([ $? = $([ $program = puzzles ] && echo 1 || echo 0) ] || echo another)"
  cp out $program
done
is 'twelve are solved' 12 grep -cE '^puzzle [0-9]+, .*: solved$' puzzles-solved
is 'twelve holes are found, in order' "$(seq -f 'puzzle %g' 12)" cut -d, -f1 puzzles
for file in "$root"/apps/tour/puzzles/*.cu; do
  name=$(basename "$file" .cu)
  promised=$(sed -n 's|^// Unsolved: ||p' "$file")
  holds "$name has at most 80 lines" [ "$(wc -l <"$file")" -le 80 ]
  holds 'and promises a message' [ "$(wc -l <<<"$promised")" = 1 -a ${#promised} -ge 15 ]
  # Messages contain the path that the compiler got; the text omits the folder.
  is 'which is that of its hole' 1 eval 'sed -nE "/^puzzle $((10#${name%%_*})), /{ s|[^ ]*apps/tour/puzzles/||g; p }" puzzles | grep -cF -- "$promised"'
done
run puzzles-solved 3
is 'one of them' 1 grep -c '^puzzle 3, .*: solved$' out
for word in 13 0 3x ''; do refuse "puzzle '$word'" 2 "'$word', expected a number from 1 to 12" puzzles "$word"; done

# The pictures of README.md show the files and the output of today.
mkdir pictures
holds 'the pictures' "$root/apps/pictures/pictures.py" "$build" pictures
for picture in pictures/*; do same "$picture" "$picture" "$root/apps/$picture"; done
finish

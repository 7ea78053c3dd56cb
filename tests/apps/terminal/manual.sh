#!/usr/bin/env bash
# The manual page that a program writes of itself, and completion in bash, which asks the program for its words.
#   manual.sh build-folder
. "$(dirname "$0")/../programs.sh" "$@"
root=$(sed -n 's/^ricci_SOURCE_DIR:STATIC=//p' "$build/CMakeCache.txt")

for name in ricci $(cd "$root/apps" && ls {run,lab}/*.cpp interop/convert.cpp | sed -E 's|.*/(.*)\.cpp|ricci-\1|'); do
  "$build/$name" --man >"$name.1" 2>err </dev/null || echo "exit code $?" >>err
  "$build/$name" --help >out
  sed 's/\\-/-/g' "$name.1" >plain
  missing=$(grep -oE '^ +(-[a-z],)?--[a-z-]+' out | tr -d ' ' | while read -r option; do grep -q "^.fB$option" plain || echo "no $option"; done)
  grep -q "^\.TH ${name^^} 1 " plain || missing+=' no title'
  verdict "$name.1 has each option" "$missing$(cat err)"
  ! command -v groff >/dev/null || verdict "$name.1 is troff without warnings" "$(groff -man -Tutf8 -ww -z "$name.1" 2>&1)"
  ! command -v mandoc >/dev/null || verdict "$name.1 is read by mandoc" "$(mandoc -T lint -W error "$name.1" 2>&1)"
done

# complete WORD ...: what bash offers for the last word, sorted.
complete_words() {
  PATH=$build:$PATH bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ricci; printf "%s\n" "${COMPREPLY[@]}" | sort -u' \
    "$root/apps/terminal/completion.bash" "$@" 2>err
}
# offers NAME EXPECTED WORD ...
offers() { verdict "$1" "$(diff <(printf '%s\n' $2) <(complete_words "${@:3}") 2>&1)$(cat err)"; }
offers 'a key of a run file' 'model.layers=' ricci-train model.la
offers 'keys of a section' 'sample.every= sample.min_p= sample.prompt= sample.seed= sample.temperature= sample.tokens= sample.top_k= sample.top_p=' ricci-train run.yaml sample.p sample.
offers 'an option' '--watch' ricci-plot --wa
offers 'a command' 'encode' ricci-tokenize enc
offers 'a program' 'runs' ricci run
offers 'a word of a program' '--log-x --log-y' ricci plot --log
offers 'values are left to bash' '' ricci-train data = te
offers 'nothing of an unknown program' '' ricci nosuch --x
: >out
! command -v zsh >/dev/null || verdict 'zsh reads its completion' "$(zsh -n "$root/apps/terminal/completion.zsh" 2>&1)"
if command -v fish >/dev/null; then
  mkdir -p home share/fish/vendor_completions.d
  for name in ricci ricci-train; do cp "$root/apps/terminal/completion.fish" share/fish/vendor_completions.d/$name.fish; done
  offered() { HOME=$folder/home XDG_DATA_DIRS=$folder/share PATH=$build:$PATH fish -c "complete -C '$1'" 2>&1; }
  verdict 'fish offers a key' "$(diff <(echo model.layers=) <(offered 'ricci-train run.yaml model.la'))"
  verdict 'and a program' "$(diff <(echo analyze) <(offered 'ricci analy' | cut -f 1))"
fi

echo "$failures failed"
exit $((failures > 0))

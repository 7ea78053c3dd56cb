# Completion for bash: the program itself prints its words. Installed under the name of each program, where bash-completion finds it.
_ricci() {
  local word=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]} offered
  COMPREPLY=()
  [[ $word = '=' || ${COMP_WORDS[COMP_CWORD - 1]} = '=' ]] && return # a value: the names of files
  if [[ ${program##*/} = ricci ]]; then
    ((COMP_CWORD > 1)) && program+=-${COMP_WORDS[1]} || offered="runs help $(compgen -c ricci- | sed s/^ricci-//)"
  fi
  [[ -n ${offered-} ]] || offered=$("$program" --complete 2>/dev/null)
  mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$word")
  [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
}
for program in ricci $(compgen -c ricci-); do complete -o default -F _ricci "$program"; done
unset program

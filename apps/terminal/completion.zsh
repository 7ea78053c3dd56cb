#compdef ricci -P ricci-*
# Completion for zsh: the program itself prints its words.
local program=$words[1]
local -a offered
if [[ ${program:t} = ricci && CURRENT -eq 2 ]]; then
  offered=(runs help ${${(k)commands[(I)ricci-*]}#ricci-})
else
  [[ ${program:t} = ricci ]] && program+=-$words[2]
  offered=(${(f)"$($program --complete 2>/dev/null)"})
fi
compadd -S '' -- ${(M)offered:#*=}
compadd -- ${offered:#*=}
_files

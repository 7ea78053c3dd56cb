# Completion for fish: the program itself prints its words. Installed under the name of each program.
function __ricci_words
    set -l typed (commandline -opc)
    set -l program $typed[1]
    if string match -qr '(^|/)ricci$' -- $program
        if test (count $typed) -eq 1
            printf '%s\n' runs help (complete -C ricci- | string replace -r '^ricci-(\S+).*' '$1')
            return
        end
        set program $program-$typed[2]
    end
    $program --complete 2>/dev/null
end
complete -c (string replace -r '\.fish$' '' (basename (status filename))) -a '(__ricci_words)'

#!/usr/bin/env bash
# Talks for a small model: a fact is asked for, answered, and followed up by a question that names nothing. Each fact about the things (40
# by default) is in many talks, but no talk appears more than once.
#   talks.sh make FOLDER [THINGS [DIGITS]]   2,000 talks in talks.jsonl, the same as plain texts in plain.jsonl, 100 others in
#                                    held_out.txt; for fewer things proportionally fewer. With DIGITS, every question begins with a
#                                    number of this many random digits: nothing can predict it
#   talks.sh score BUILD RUN FOLDER [COUNT]   how many of the held-out talks the run answers exactly, turn by turn
set -eu
case ${1:-} in
make)
  mkdir -p "$2"
  awk -v folder="$2" -v things="${3:-40}" -v digits="${4:-0}" '
    function list(text, into) { return split(text, into, " ") }
    function json(role, text) { return "{\"role\": \"" role "\", \"content\": \"" text "\"}" }
    function plain(role, text) { return "<|im_start|>" role "\\n" text "<|im_end|>\\n" }
    function number(  text, i) {
      for (i = 0; i < digits; ++i) text = text int((drawn = drawn * 16807 % 2147483647) / 214748365)
      return digits ? "Ticket " text ": " : ""
    }
    BEGIN {
      drawn = 1
      list("kite drum lamp boat bell coat vase harp sled tent rug fan cup hat key map net pan rope saw bowl cart desk flag gong hoop iron jug kettle loom mask nail oven pipe quilt ring shelf toy urn whip", thing)
      list("red blue green gray pink", colour); list("hall attic yard cellar shed garden kitchen", place); list("Ann Bob Carl Dora Emil Fay Gus Ida Jack", owner)
      list("colour place owner", kind)
      for (i = 0; i < 54 * things; ++i) {
        n = (i * 7919 + 11) % (54 * things)  # a permutation: 7919 is prime
        t = n % things + 1; rest = int(n / things); a = rest % 3 + 1; rest = int(rest / 3); b = (a + rest % 2) % 3 + 1; rest = int(rest / 2)
        p = rest % 3; q = int(rest / 3) % 3; what = thing[t]
        fact["colour"] = "The " what " is " colour[t * 3 % 5 + 1] "."; fact["place"] = "The " what " is in the " place[t * 4 % 7 + 1] "."
        fact["owner"] = "The " what " belongs to " owner[t * 5 % 9 + 1] "."
        ask["colour"] = (p == 0 ? "What colour is the " : p == 1 ? "Tell me the colour of the " : "Do you know the colour of the ") what "?"
        ask["place"] = (p == 0 ? "Where is the " : p == 1 ? "Tell me the place of the " : "Do you know the place of the ") what "?"
        ask["owner"] = (p == 0 ? "Who has the " : p == 1 ? "Tell me the owner of the " : "Do you know the owner of the ") what "?"
        then["colour"] = q == 0 ? "And its colour?" : q == 1 ? "What colour is it?" : "Which colour has it?"
        then["place"] = q == 0 ? "And its place?" : q == 1 ? "Where is it?" : "In which place is it?"
        then["owner"] = q == 0 ? "And its owner?" : q == 1 ? "Who has it?" : "To whom does it belong?"
        u = number() ask[kind[a]]; v = fact[kind[a]]; w = number() then[kind[b]]; x = fact[kind[b]]
        if (i < 50 * things) {
          print "{\"messages\": [" json("user", u) ", " json("assistant", v) ", " json("user", w) ", " json("assistant", x) "]}" >(folder "/talks.jsonl")
          print "{\"text\": \"" plain("user", u) plain("assistant", v) plain("user", w) plain("assistant", x) "\"}" >(folder "/plain.jsonl")
        } else if (i < 52.5 * things) print u "\n" v "\n" w "\n" x >(folder "/held_out.txt")
      }
    }'
  ;;
score)
  right=0 count=0
  while [ $count -lt "${5:-100}" ] && read -r first && read -r answer && read -r second && read -r follow; do
    count=$((count + 1))
    said=$(printf '%s\n%s\n' "$first" "$second" | "$2/ricci" generate "$3" --chat --template chatml --temperature 0 --tokens 40)
    [ "$said" = "$answer"$'\n'"$follow" ] && right=$((right + 1))
  done <"$4/held_out.txt"
  echo "$right of $count talks"
  ;;
*) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2 && exit 1 ;;
esac

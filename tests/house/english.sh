#!/usr/bin/env bash
# Plain English in comments, messages and names. Two rules hold without exception: a comment begins with the thing that it is about, not
# with "of", whose noun is the line of code beside it, and not with a clause of What, Which, How or Who. A comment over several lines may
# have such a word at the begin of a later line. Of other turns of phrase there may be a few where nothing simpler exists, each counted:
#   english.sh           checks
#   english.sh CLASS     lists the lines of a class: chain, place, colon, order, speech, amount, person or name
set -u
cd "$(dirname "$0")/../.." || exit 1
limits='chain 12  place 6  colon 14  order 8  speech 14  amount 6  person 4  name 10'
# chain: that of, those who.  place: stands, lies.  colon: "empty: none".  order: behind for after.  speech: a line tells.
# amount: so many.  person: nobody, who.  name: a variable called at, of, to or in, or a function called of or in.

files=$(find core cuda autograd ops models data apps -name '*.cpp' -o -name '*.h' -o -name '*.cu')
[ "$(wc -w <<<"$files")" -gt 300 ] || { echo 'too few files were found'; exit 1; }
faults() {
  awk '
    { comment = match($0, /\/\/ ?/) ? substr($0, RSTART + RLENGTH) : ""; alone = $0 ~ /^ *\/\//; goes_on = alone && before; before = alone }
    comment ~ /^[Oo]f / && !goes_on { print FILENAME ":" FNR ": a comment that begins with \"of\": " comment }
    comment ~ /^(What|Which|How|Who|Whether) / && alone && !goes_on && comment !~ /\?/ { print FILENAME ":" FNR ": a comment that begins with a clause: " comment }' "$@"
}
# One line for each find: CLASS FILE:LINE: TEXT.
turns() {
  awk '
    BEGIN {
      word = "[^a-z0-9_]"
      text_class["chain"] = word "((that|those) of|of which|of those|that which|those (that|which|who))" word
      text_class["place"] = word "(stands?|stood|standing|lies?|lay|lying)" word
      text_class["order"] = word "(behind|in front of)" word
      text_class["speech"] = word "(tells?|told|telling|says?|said|saying|hears?|heard|hearing)" word
      text_class["amount"] = word "(so|as) (many|much|few)" word
      text_class["person"] = word "(nobody|somebody|anybody|everybody|who|whom|whoever|someone|anyone)" word
      colon = "(^ ?|[;,.(] ?)(empty|nothing|none|null|nullptr|any|-?[0-9]+|false|true|no): "
    }
    function find(class, text, pattern) {
      while (match(text, pattern)) { print class, FILENAME ":" FNR ": " $0; text = substr(text, RSTART + RLENGTH - 1) }
    }
    # Names of variables, and of functions where they are called by their name alone. A method may be called at, to or in.
    function find_names(code,  after, start, called) {
      if (code ~ /^ *#/) return
      for (code = " " code " "; match(code, /[A-Za-z0-9_](at|of|to|in)[A-Za-z0-9_]|[^A-Za-z0-9_](at|of|to|in)[^A-Za-z0-9_]/); code = substr(code, RSTART + 1)) {
        if (substr(code, RSTART, 1) ~ /[A-Za-z0-9_]/) continue
        after = substr(code, RSTART + 3); called = after ~ /^ *\(/; start = substr(code, RSTART, 1)
        if (!called || (substr(code, RSTART + 1, 2) ~ /of|in/ && start !~ /[.>&]/)) print "name", FILENAME ":" FNR ": " $0
      }
    }
    {
      code = $0; strings = ""
      while (match(code, /"([^"\\]|\\.)*"/)) {
        if (index(substr(code, 1, RSTART), "//")) break
        strings = strings " " substr(code, RSTART + 1, RLENGTH - 2) " "
        code = substr(code, 1, RSTART - 1) "\047\047" substr(code, RSTART + RLENGTH)
      }
      comment = ""
      if (match(code, /\/\/ ?/)) { comment = substr(code, RSTART + RLENGTH); code = substr(code, 1, RSTART - 1) }
      for (class in text_class) find(class, tolower(" " comment " " strings " "), text_class[class])
      find("colon", tolower(comment), colon)
      if (FILENAME !~ /report.page.cpp$/) find_names(code)  # which holds JavaScript
    }' "$@"
}
# A plain sentence passes, and each rule finds its example.
[ "$(printf '%s\n' 'int n;  // of a row' '// What it does.' 'int m;' '// The length' '// of a row.' | faults | wc -l)" = 2 ] || { echo 'the rules are broken'; exit 1; }
sample='// Those of the head stand here, so many lie behind it.
f("nobody tells");  // empty: no text
Arg of; int at = of; values.at(2); x.to(y); format.atlas(); fill(to(x, "who said"), 1);  // The place after, one per row, as before.'
[ "$(turns <<<"$sample" | cut -d' ' -f1 | sort | uniq -c | xargs)" = '1 amount 1 chain 1 colon 3 name 1 order 2 person 2 place 2 speech' ] || { echo 'the counts are broken'; exit 1; }

all=$(turns $files)
# ctest gives every rule the folder of the build.
[ $# = 0 ] || [ -d "$1" ] || { grep "^$1 " <<<"$all" | cut -d' ' -f2-; exit; }
fault=0 found=$(faults $files)
[ -z "$found" ] || { echo "$found"; fault=1; }
while read -r class most; do
  count=$(grep -c "^$class " <<<"$all")
  echo "$class: $count, at most $most"
  [ "$count" -le "$most" ] || { grep "^$class " <<<"$all" | cut -d' ' -f2-; fault=1; }
done < <(xargs -n2 <<<"$limits")
exit $fault

#!/usr/bin/env bash
# Plain English in comments, messages, names and pages, because a reader stumbles over sentences that read as translated. Two rules hold without
# exception: a comment begins with its subject, not with "of", and not with a clause of What, Which, How or Who. A later line of a longer
# comment can begin with such a word. Other turns of phrase are counted, and their limits only fall:
#   english.sh           checks
#   english.sh CLASS     lists the lines of a class
set -u
cd "$(dirname "$0")/../.." || exit 1
limits='chain 1  place 6  colon 12  order 5  speech 5  amount 6  person 3  name 5
  what 15  relative 21  which 35  may 9  so_that 2  several 4  there 17  where 7  alone 7  same 9
  beside 2  no_noun 4  own 6  go_on 0  place_of 0  too 8  anew 0  makes_of 12  house 3'
# chain: that of, those who.  place: stands, lies.  colon: "empty: none".  order: behind for after.  speech: a line tells.
# amount: so many.  person: nobody, who.  name: a variable called at, of, to or in, or a function called of or in.
# The turns of the second and third line, in comments, messages and pages, read as translated: "of what it reads" for "its inputs", "in which",
# ", which", "may" for can, "so that", "several", "where there is", "where" for if, "alone" for only, an opening "The same", "beside", "is no
# multiple", "of its own", "goes on", "in place of", ", too", "any more", "makes X of Y"; and "floor", "house", "room" in pages.

pages=$(echo README.md; find core cuda autograd ops models data apps tests -name '*.md')
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
      preposition = "(in|by|of|for|from|to|with|on|at|through|after|before|over|under|without|against)"
      text_class["what"] = "(" word "(of|is|from|to|in|on|for|with|by|as|and|or|than|at|are|has|have|see|reads?|writes?|keeps?|counts?|knows?|" \
        "checks?|holds?|shows?|does|about|after|before|needs?|adds?|exactly|only)|^|[.:;,(]) what" word
      text_class["relative"] = word "(" preposition " which|whose)" word
      text_class["which"] = ", which" word
      text_class["may"] = word "may" word
      text_class["so_that"] = word "so that" word
      text_class["several"] = word "several" word
      text_class["there"] = word "((that|which) (is|are|was|were) there|(where|if) there|there (is|are|was|were)( (no|none|any|one|an?|two|more|such|only)|[.;,)]| $))" word "?"
      text_class["where"] = "((^|[.;:] ?)|, ) ?where (there|it|that|they|this|the|an?|no|one|all)" word
      text_class["alone"] = word "alone" word
      text_class["same"] = "(^ ?|[.;:] )the same" word
      text_class["beside"] = word "besides?" word
      text_class["no_noun"] = word "(is|are|was|were|be) (no|none)" word
      text_class["own"] = word "of (its|their|his|her|one\047s|your|our|my) own" word
      text_class["go_on"] = word "(go|goes|going|went|gone) on" word
      text_class["place_of"] = word "in (the )?place of" word
      text_class["too"] = ", too" word
      text_class["anew"] = word "(any ?more|anew)" word
      text_class["makes_of"] = word "(makes?|made|making)( [^.,; ]+)?( [^.,; ]+)?( [^.,; ]+)? of" word
      page_class["house"] = word "(floors?|house|rooms?)" word
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
    FILENAME ~ /\.md$/ {
      if (/^```/) inside = !inside
      text = $0
      gsub(/`[^`]*`/, "x", text)
      if (inside) next
      for (class in text_class) if (class !~ /^(chain|place|order|speech|amount|person)$/) find(class, tolower(" " text " "), text_class[class])
      for (class in page_class) find(class, tolower(" " text " "), page_class[class])
      next
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
Arg of; int at = of; values.at(2); x.to(y); format.atlas(); fill(to(x, "who said"), 1);  // The place after, one per row, as before.
// The same of what it reads, which may be alone, too. Where there is one, it goes on beside several others in place of
// a tape whose end is no multiple of its own, so that it makes a list of them anew.'
expected='1 alone 1 amount 1 anew 1 beside 1 chain 1 colon 1 go_on 1 makes_of 1 may 3 name 1 no_noun 1 order 1 own 2 person 1 place_of 2 place 1 relative 1 same
  1 several 1 so_that 2 speech 1 there 1 too 1 what 1 where 1 which'
[ "$(turns <<<"$sample" | cut -d' ' -f1 | sort | uniq -c | xargs -n2 | sort -k2)" = "$(xargs -n2 <<<"$expected" | sort -k2)" ] ||
  { echo 'the counts are broken'; turns <<<"$sample"; exit 1; }
[ "$(printf 'A room of the `house`.\n```\nfloor\n```\n' >"${TMPDIR:-/tmp}/english-$$.md"; turns "${TMPDIR:-/tmp}/english-$$.md" | wc -l; rm "${TMPDIR:-/tmp}/english-$$.md")" = 1 ] ||
  { echo 'the pages are broken'; exit 1; }

all=$(turns $files $pages)
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

#!/usr/bin/env bash
# ricci-inspect of trained runs: files that other programs can read, texts escaped, and messages.
#   inspect.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"
command -v xmllint >/dev/null || needs 'xmllint (Debian: libxml2-utils)'

# well_formed NAME FOLDER DRAWINGS: as many drawings, all of them XML, the page too, and nothing half-written.
well_formed() {
  local fault
  fault=$(xmllint --noout "$2"/*.svg "$2"/index.html 2>&1)
  [ "$(find "$2" -name '*.svg' | wc -l)" = "$3" ] || fault+=" not $3 drawings: $(ls "$2" | tr '\n' ' ')"
  [ -z "$(leftovers)" ] || fault+=" left behind: $(leftovers)"
  verdict "$1" "$fault"
}

printf 'a <b> & "c" ]]> </svg>\n%.0s' {1..30} >marks.txt
for mixer in metric dispatcher; do
  accept "train $mixer" train tiny.yaml name=$mixer data=marks.txt model.mixer=$mixer model.heads=2
  accept "inspect $mixer" inspect runs/$mixer -o $mixer.out
  verdict 'it says what there is, and where' "$(grep -qE "^runs/$mixer: $mixer; layers: 1, heads: 2, tokens of text: 16; [0-9]+ files: $mixer\.out/index\.html, $mixer\.out/inspect\.json, drawings$" out || shown out)"
done
# Scores, matrix and distances of two heads, and a spectrum; scores and coefficients of two heads.
well_formed 'drawings and page of a metric' metric.out 7
well_formed 'drawings and page of a dispatcher' dispatcher.out 4
verdict 'a drawing is SVG' "$([ "$(xmllint --xpath 'name(/*)' metric.out/layer0_head1_scores.svg)" = svg ] || echo no)"
accept 'train the block of Llama' train tiny.yaml name=llama data=marks.txt model.preset=llama model.heads=4 model.kv_heads=2
accept 'inspect it' inspect runs/llama -o llama.out
well_formed 'scores and a matrix of each query head, and a spectrum' llama.out 9
verdict 'a matrix says that it is without the rotation' "$([ "$(grep -l 'Wq Wk^T without the rotation' llama.out/*_matrix.svg | wc -l)" = 4 ] &&
  grep -q 'between Wq and Wk comes the rotation by the distance of the two\.' llama.out/index.html || ls llama.out)"
sed 's/heads: 2, //' tiny.yaml >headless.yaml
accept 'no scores at all' train headless.yaml name=none model.mixer=identity
accept 'is told' inspect runs/none -o none.out
verdict 'in one line' "$(head -1 out | diff - <(echo 'identity has neither scores, coefficients nor a metric: what a position reads does not depend on the text.'))"
verdict 'and a page without drawings' "$(xmllint --noout none.out/index.html 2>&1; ls none.out | diff - <(printf 'index.html\ninspect.json\n'))"

# Two heads: scores, matrices and a spectrum of each layer. Bottom-up has an aggregation layer too.
declare -A drawings=([topdown]=10 [bottomup]=15 [retina]=5 [coarse]=5)
for family in topdown bottomup retina coarse; do
  scales=('model.scales=[1, 4]')
  [ $family != coarse ] || scales=(model.scale=4)
  accept "train $family" train tiny.yaml name=$family steps=1 model.family=$family "${scales[@]}" model.heads=2
  accept "inspect $family" inspect runs/$family -o $family.out
  verdict 'all its layers' "$(grep -q "^runs/$family: $family; layers: $((drawings[$family] / 5)), heads: 2, tokens of text: 16;" out || shown out)"
  well_formed "drawings of every layer of $family" $family.out ${drawings[$family]}
done
verdict 'layers say what they are of' "$(grep -o '<h2>[^<]*' bottomup.out/index.html | diff - <(printf '<h2>Layer %s\n' '0 (aggregation)' 1 '2 (cells of 4)'))"
verdict 'a head of coarse cells sees those that are complete' \
  "$(grep -o '"key_tokens":4,"scores":\[\[0.0,0.0,0.0,0.0\],\[0.0,0.0,0.0,0.0\],\[0.0,0.0,0.0,0.0\],\[1.0,0.0,0.0,0.0\]' retina.out/inspect.json | wc -l | diff - <(echo 1))"

printf 'b & a\n' >few.txt
accept 'a text in a file, a head, tokens' inspect runs/metric --text-file few.txt --heads 1 --token '<' --token b --nearest 2 --theme dark --dtype f64 --length 4 -o some.out
verdict 'so many tokens of it' "$(grep -q 'heads: 1, tokens of text: 4;' out || shown out)"
well_formed 'drawings of one head' some.out 4
verdict 'a written report is replaced' "$(run inspect runs/metric --heads 1 -o some.out || shown err; leftovers)"
accept 'the best checkpoint on an emulated GPU' inspect runs/dispatcher --checkpoint best --device cuda_emulated --length 3 -o emulated.out

accept 'a head and a layer named twice' inspect runs/metric --layers 0,0 --heads 1,1 -o twice.out
verdict 'count once' "$(grep -q 'layers: 1, heads: 1,' out || shown out)"

refuse 'no such run' 1 'runs/none-such: no such run folder' inspect runs/none-such
refuse 'a layer that is not there' 1 '--layers: 1, but the model has 1 layers' inspect runs/metric --layers 1
refuse 'a head that is not there' 1 '--heads: 2, but the model has 2 heads' inspect runs/metric --heads 0,2
refuse 'a token that is two' 1 "--token: 'ab' is 2 tokens, expected one" inspect runs/metric --token ab
refuse 'a character outside the vocabulary' 1 "'#' \(U\+0023\) .* is not among" inspect runs/metric --text '#'
touch empty.txt
refuse 'an empty file' 1 '--text-file: is empty' inspect runs/metric --text-file empty.txt
refuse 'an empty text' 1 '--text: is empty' inspect runs/metric --text ''
refuse 'two texts' 2 '--text' inspect runs/metric --text a --text-file few.txt
refuse 'a context that is too long' 1 'context: 17 is longer than the 16 tokens' inspect runs/metric --context 17
refuse 'an unknown theme' 1 "theme: expected auto, light or dark, got 'blue'" inspect runs/metric --theme blue
refuse 'a length of 0' 2 '--length: .*0' inspect runs/metric --length 0
refuse 'a layer that is no number' 2 '--layers' inspect runs/metric --layers x
touch file.out
refuse 'a file in the place of the folder' 1 'file\.out' inspect runs/metric -o file.out
verdict 'nothing was written for those' "$([ ! -e inspection ] || instead ls inspection)"

echo "$failures failed"
exit $((failures > 0))

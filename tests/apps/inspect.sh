#!/usr/bin/env bash
# ricci-inspect of trained runs: files that other programs can read, texts escaped, and messages.
#   inspect.sh build-folder
. "$(dirname "$0")/outputs.sh" "$@"
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
  prints "inspect $mixer" "^runs/$mixer: $mixer; layers: 1, heads: 2, tokens of text: 16; [0-9]+ files: $mixer\.out/index\.html, $mixer\.out/inspect\.json, drawings$" inspect runs/$mixer -o $mixer.out
done
# Scores, matrix and distances of two heads, and a spectrum; scores and coefficients of two heads.
well_formed 'drawings and page of a metric' metric.out 7
well_formed 'drawings and page of a dispatcher' dispatcher.out 4
accept 'train the block of Llama' train tiny.yaml name=llama data=marks.txt model.preset=llama model.heads=4 model.kv_heads=2
accept 'inspect it' inspect runs/llama -o llama.out
well_formed 'scores and a matrix of each query head, and a spectrum' llama.out 9
is 'a matrix says that it is without the rotation' 4 eval "grep -l 'Wq Wk^T without the rotation' llama.out/*_matrix.svg | wc -l"
shows 'and the page why' 'between Wq and Wk comes the rotation by the distance of the two\.' llama.out/index.html
sed 's/heads: 2, //' tiny.yaml >headless.yaml
accept 'no scores at all' train headless.yaml name=none model.mixer=identity
prints 'is told' '^identity has neither scores, coefficients nor a metric: what a position reads does not depend on the text\.$' inspect runs/none -o none.out
verdict 'and a page without drawings' "$(xmllint --noout none.out/index.html 2>&1; ls none.out | diff - <(printf 'index.html\ninspect.json\n'))"

# Two heads: scores, matrices and a spectrum of each layer. Bottom-up has an aggregation layer too.
declare -A layers=([topdown]=2 [bottomup]=3 [retina]=1 [coarse]=1)
for family in topdown bottomup retina coarse; do
  scales=('model.scales=[1, 4]')
  [ $family != coarse ] || scales=(model.scale=4)
  accept "train $family" train tiny.yaml name=$family steps=1 model.family=$family "${scales[@]}" model.heads=2
  prints "inspect $family" "^runs/$family: $family; layers: ${layers[$family]}, heads: 2, tokens of text: 16;" inspect runs/$family -o $family.out
  well_formed "drawings of every layer of $family" $family.out $((5 * layers[$family]))
done
is 'layers say what they are of' $'<h2>Layer 0 (aggregation)\n<h2>Layer 1\n<h2>Layer 2 (cells of 4)' grep -o '<h2>[^<]*' bottomup.out/index.html
is 'a head of coarse cells sees those that are complete' 1 \
  grep -co '"key_tokens":4,"scores":\[\[0.0,0.0,0.0,0.0\],\[0.0,0.0,0.0,0.0\],\[0.0,0.0,0.0,0.0\],\[1.0,0.0,0.0,0.0\]' retina.out/inspect.json

printf 'b & a\n' >few.txt
prints 'a text in a file, a head, tokens' 'heads: 1, tokens of text: 4;' inspect runs/metric --text-file few.txt --heads 1 --token '<' --token b --nearest 2 --theme dark --dtype f64 --length 4 -o some.out
well_formed 'drawings of one head' some.out 4
verdict 'a written report is replaced' "$(run inspect runs/metric --heads 1 -o some.out || shown err; leftovers)"
accept 'the best checkpoint on an emulated GPU' inspect runs/dispatcher --checkpoint best --device cuda_emulated --length 3 -o emulated.out
prints 'a head and a layer named twice count once' 'layers: 1, heads: 1,' inspect runs/metric --layers 0,0 --heads 1,1 -o twice.out

touch empty.txt file.out
refuse 'an empty file' 1 '--text-file: is empty' inspect runs/metric --text-file empty.txt
refuse 'an empty text' 1 '--text: is empty' inspect runs/metric --text ''
refuse 'two texts' 2 '--text' inspect runs/metric --text a --text-file few.txt
refuse 'a layer that is not there' 1 '--layers: 1, but the model has 1 layers' inspect runs/metric --layers 1
refuse 'a file in the place of the folder' 1 'file\.out' inspect runs/metric -o file.out
holds 'nothing was written for those' [ ! -e inspection ]
finish

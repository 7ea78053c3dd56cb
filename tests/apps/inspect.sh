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
# Scores, matrix and distances of each head of a metric, and a spectrum of the layer; scores and coefficients of a dispatcher; scores and a
# matrix of each query head of others, and a spectrum. Top-down has two layers, bottom-up an aggregation layer too.
while read -r name layers drawings heads keys; do
  accept "train $name" train tiny.yaml steps=1 data=marks.txt name=$name model.heads=$heads ${keys:-model.mixer=$name}
  prints "inspect $name" "^runs/$name: [a-z]+; layers: $layers, heads: $heads, tokens of text: 16; [0-9]+ files: $name\.out/index\.html, $name\.out/inspect\.json, drawings$" inspect runs/$name -o $name.out
  well_formed "drawings and page of $name" $name.out $drawings
done <<'END'
metric 1 7 2
dispatcher 1 4 2
llama 1 9 4 model.preset=llama model.kv_heads=2
topdown 2 10 2 model.family=topdown model.scales=[1,4]
bottomup 3 15 2 model.family=bottomup model.scales=[1,4]
retina 1 5 2 model.family=retina model.scales=[1,4]
coarse 1 5 2 model.family=coarse model.scale=4
END
is 'a matrix says that it is without the rotation' 4 eval "grep -l 'Wq Wk^T without the rotation' llama.out/*_matrix.svg | wc -l"
shows 'and the page why' 'between Wq and Wk comes the rotation by the distance of the two\.' llama.out/index.html
sed 's/heads: 2, //' tiny.yaml >headless.yaml
accept 'no scores at all' train headless.yaml name=none model.mixer=identity
prints 'is told' '^identity has neither scores, coefficients nor a metric: what a position reads does not depend on the text\.$' inspect runs/none -o none.out
verdict 'and a page without drawings' "$(xmllint --noout none.out/index.html 2>&1; ls none.out | diff - <(printf 'index.html\ninspect.json\n'))"
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

#!/usr/bin/env bash
# Drawings are XML to a parser that is not ours.
#   drawing.sh build-folder
. "$(dirname "$0")/../../programs.sh" "$@"
command -v xmllint >/dev/null || needs 'xmllint (Debian: libxml2-utils)'

accept 'a run' train tiny.yaml name=one steps=5
accept 'another, with a name to be escaped' train tiny.yaml 'name=a<b>&"c"' steps=5
for options in '' '--log-x --log-y --x tokens' '--theme dark --keys lr,grad_norm --smooth 5'; do
  accept "a drawing $options" plot runs/one 'runs/a<b>&"c"' -o plot.svg $options
  verdict 'it is XML' "$(xmllint --noout plot.svg 2>&1)"
  verdict 'it is an SVG drawing' "$([ "$(xmllint --xpath 'name(/*)' plot.svg)" = svg ] || echo no)"
done

echo "$failures failed"
exit $((failures > 0))

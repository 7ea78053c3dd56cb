#!/usr/bin/env bash
# Drawings as PNG, as another program decodes them.
#   png.sh build-folder
. "$(dirname "$0")/../../programs.sh" "$@"
command -v python3 >/dev/null || needs python3

accept 'a run' train tiny.yaml name=one steps=5
if ! grep -q '^RICCI_RSVG_FOUND:INTERNAL=1$' "$build/CMakeCache.txt"; then
  refuse 'PNG without librsvg' 1 'plot\.png: PNG needs librsvg: apps/install_packages\.sh librsvg2-dev, then build again$' plot runs/one -o plot.png
  ((failures)) || needs 'librsvg, to write PNG (Debian: librsvg2-dev)'
  exit 1
fi

# decoded FILE: width, height, the colour of the first pixel, the number of colours.
decoded() {
  python3 -c 'import struct, sys, zlib
data = open(sys.argv[1], "rb").read()
assert data[:8] == b"\x89PNG\r\n\x1a\n"
width, height, bits, kind = struct.unpack(">IIBB", data[16:26])
at, packed = 8, b""
while at < len(data):
    size, name = struct.unpack(">I4s", data[at:at + 8])
    body = data[at + 8:at + 8 + size]
    assert zlib.crc32(name + body) == struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0]
    packed, at = packed + (body if name == b"IDAT" else b""), at + 12 + size
raw, pixel = zlib.decompress(packed), {2: 3, 6: 4}[kind]
line, above, colours, first = width * pixel, bytearray(width * pixel), set(), None
for y in range(height):
    row = bytearray(raw[y * (line + 1) + 1:(y + 1) * (line + 1)])
    for x in range(line):
        a, b, c = row[x - pixel] if x >= pixel else 0, above[x], above[x - pixel] if x >= pixel else 0
        p = a + b - c
        paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        row[x] = (row[x] + (0, a, b, (a + b) // 2, paeth)[raw[y * (line + 1)]]) & 255
    first = first or bytes(row[:3]).hex()
    colours.update(bytes(row[i:i + 3]) for i in range(0, line, 3 * pixel))
    above = row
print(width, height, first, len(colours) > 20)' "$1" 2>&1
}

for theme in light dark auto; do
  accept "a chart, $theme" plot runs/one -o plot.png --theme $theme
  accept 'the same as SVG' plot runs/one -o plot.svg --theme $theme
  size=$(sed -nE '1s/.* width="([0-9]+)" height="([0-9]+)".*/\1 \2/p' plot.svg | awk '{ print 2 * $1, 2 * $2 }')
  [ $theme = dark ] && colour=14171b || colour=ffffff
  verdict 'has two pixels for each unit, and its colours' "$(decoded plot.png | diff <(echo "$size $colour True") -)"
done
accept 'masks' analyze masks runs/one -o masks.png
verdict 'are a picture' "$(decoded masks.png | grep -q ' ffffff ' || decoded masks.png)"
refuse 'a PNG of what is a page' 1 'a\.png: expected a name that ends in \.html' analyze completions runs/one -o a.png

echo "$failures failed"
exit $((failures > 0))

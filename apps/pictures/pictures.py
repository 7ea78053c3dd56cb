#!/usr/bin/env python3
"""Draws the pictures of README.md: a terminal with puzzle 5, its error and its solution, three levels of shift-and-sum, and cells of two scales.
The terminal shows the files and the output of the programs in a build folder.
  pictures.py BUILD FOLDER      writes terminal.svg, shift_and_sum.svg and cells.svg into FOLDER"""
import html, os, re, subprocess, sys, textwrap

kRoot = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
kColumns = 60
kStyle = '''<style>
svg{background:#fff} text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2328}
.label{font:13px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif} .middle{text-anchor:middle}
.muted{fill:#59636e} .bad{fill:#b3261e} .good{fill:#116329} .strong{font-weight:700}
.back{fill:#f6f8fa;stroke:#d1d9e0} .cell{fill:#ddf4ff;stroke:#0969da} .token{fill:#fff;stroke:#59636e} .line{stroke:#8c959f;fill:none} .path{stroke:#0969da;stroke-width:2.5;fill:none}
@media (prefers-color-scheme:dark){svg{background:#0d1117} text{fill:#e6edf3} .muted{fill:#9198a1} .bad{fill:#ff7b72} .good{fill:#56d364}
.back{fill:#161b22;stroke:#3d444d} .cell{fill:#0c2d6b;stroke:#4493f8} .token{fill:#0d1117;stroke:#9198a1} .line{stroke:#656c76} .path{stroke:#4493f8}}
</style>'''


def svg(title, width, height, body):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
            f'<title>{html.escape(title)}</title>\n{kStyle}\n' + '\n'.join(body) + '\n</svg>\n')


def text(x, y, words, style=''):
    return f'<text xml:space="preserve" x="{x}" y="{y}"' + (f' class="{style}"' if style else '') + f'>{html.escape(words)}</text>'


def output_of(program, *arguments):
    output = subprocess.run([program, *arguments], capture_output=True, text=True).stdout.strip()
    return re.sub(r'\S*(apps/tour/puzzles/)', r'\1', output)  # the path of a file depends on the build folder


def terminal(build):
    """The kernel of puzzle 5, its error, the mended kernel, and the check that passes."""
    folder = os.path.join(kRoot, 'apps/tour/puzzles')
    with open(os.path.join(folder, '05_barrier.cu'), encoding='utf-8') as file:
        source = file.read().split('\n')
    first, end = source.index('#else') + 1, source.index('#endif')
    with open(os.path.join(folder, 'solutions/05_barrier.inc'), encoding='utf-8') as file:
        solution = file.read().rstrip('\n').split('\n')
    kernel = [(f'{number:3}  {line[4:]}', 'bad' if '__syncthreads' in line else '')
              for number, line in enumerate(source[first:end], first + 1)]
    mended = [(f'{number:3}  {line[4:]}', 'good' if '__syncthreads' in line else '') for number, line in enumerate(solution, first + 1)]
    command = ('$ build/ricci-puzzles 5', 'strong')
    failed = textwrap.wrap(output_of(os.path.join(build, 'ricci-puzzles'), '5'), kColumns)
    solved = textwrap.wrap(output_of(os.path.join(build, 'ricci-puzzles-solved'), '5'), kColumns)
    parts = [[('apps/tour/puzzles/05_barrier.cu', 'muted')] + kernel, [command] + [(line, 'bad') for line in failed],
             [('the same lines with the barrier after the if', 'muted')] + mended, [command] + [(line, 'good') for line in solved]]
    step, width, y = 19, 8.5 * kColumns + 40, 26
    body = []
    for part in parts:
        for line, style in part:
            body.append(text(20, y, line, style))
            y += step
        y += step // 2
    height = y - step + 8
    body.insert(0, f'<rect class="back" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>')
    return svg('A barrier that half of the threads miss: the emulator names the line', width, height, body)


def shift_and_sum():
    """Three levels over eight positions, and the lines that reach the last position."""
    step, rise, levels, positions = 56, 74, 3, 8
    x = lambda i: 66 + step * i
    y = lambda level: 30 + rise * level
    body, reached = [], {positions - 1}
    paths = []
    for level in reversed(range(levels)):
        before = reached | {i - 2**level for i in reached}
        for i in range(positions):
            for source in [i, i - 2**level]:
                if source >= 0:
                    style = 'path' if i in reached and source in before else 'line'
                    line = f'<path class="{style}" d="M{x(source)} {y(level) + 9}L{x(i)} {y(level + 1) - 9}"/>'
                    (paths if style == 'path' else body).append(line)
        reached = {i for i in before if i >= 0}
    body += paths
    for level in range(levels + 1):
        body.append(text(8, y(level) + 4, 'v' if level == 0 else f'+{2**(level - 1)}', 'label muted'))
        body += [f'<circle class="{"cell" if level == levels and i == positions - 1 else "token"}" cx="{x(i)}" cy="{y(level)}" r="9"/>' for i in range(positions)]
    body += [text(x(i), y(levels) + 30, str(i), 'label middle') for i in range(positions)]
    return svg('Shift-and-sum: after three levels position 7 has received all eight values', x(positions - 1) + 30, y(levels) + 44, body)


def cells():
    """Eight tokens and two cells of four; each token is joined to the newest complete cell."""
    step, size = 56, 4
    x = lambda t: 24 + step * t
    body = []
    for cell in range(2):
        left = x(size * cell)
        body.append(f'<rect class="cell" x="{left}" y="20" width="{step * size - 12}" height="34" rx="6"/>')
        body.append(text(left + (step * size - 12) / 2, 42, f'cell {cell}: tokens {size * cell} to {size * cell + size - 1}', 'label middle'))
    for t in range(2 * size):
        body.append(f'<rect class="token" x="{x(t)}" y="124" width="{step - 12}" height="34" rx="6"/>')
        body.append(text(x(t) + (step - 12) / 2, 146, str(t), 'label middle'))
        if t >= size - 1:
            cell = (t + 1) // size - 1
            middle = x(size * cell) + (step * size - 12) / 2
            body.append(f'<path class="path" d="M{middle} 54L{x(t) + (step - 12) / 2} 124"/>')
    body.append(text(24, 184, 'Token 3 completes cell 0. Tokens 4 to 6 cannot use cell 1 yet:', 'label muted'))
    body.append(text(24, 202, 'it is a mean of tokens that they still have to predict.', 'label muted'))
    return svg('Cells of two scales: a token uses the newest complete cell', x(2 * size) + 12, 218, body)


def main():
    if len(sys.argv) != 3:
        sys.exit('pictures.py: expected a build folder and the folder to write to')
    build, folder = sys.argv[1:]
    for name, picture in {'terminal': terminal(build), 'shift_and_sum': shift_and_sum(), 'cells': cells()}.items():
        with open(os.path.join(folder, name + '.svg'), 'w', encoding='utf-8') as file:
            file.write(picture)


main()

#!/usr/bin/env python3
"""Writes the tour as one HTML page: the text of each stop, and its file with the comments next to the code that follows them.

  apps/tour/page.py tour.html
"""
import html, itertools, os, re, sys

kStyle = """
body { font: 15px/1.45 sans-serif; margin: 2em auto; max-width: 1500px; padding: 0 1em; color: #222 }
table { border-collapse: collapse; width: 100%; table-layout: fixed }
td { vertical-align: top; padding: 0 1em 0.4em 0 }
td.text { width: 42%; color: #444; font: 13px/1.4 sans-serif; overflow-wrap: anywhere }
td.text pre { margin: 0; font: 11px/1.35 monospace; overflow-x: auto }
td.code pre { margin: 0; font: 12px/1.35 monospace; background: #f6f6f4; padding: 0.3em 0.6em; white-space: pre-wrap; overflow-wrap: anywhere }
div.stop { background: #eef3f8; padding: 0.6em 0.8em }
div.stop pre { overflow-x: auto }
code { background: #eee }
"""


def marked_up(text):
    prose, *blocks = re.split(r'(?s)```\n(.*?)```', text, maxsplit=1)
    prose = html.escape(' '.join(prose.split()), quote=False)
    prose = re.sub(r'`([^`]+)`', r'<code>\1</code>', prose)
    prose = re.sub(r'\[([^\]]+)\]\([^)]+\)', r'\1', prose)
    prose = re.sub(r'\*([^*]+)\*', r'<em>\1</em>', prose)
    return prose + (f'<pre>{html.escape(blocks[0], quote=False)}</pre>' + marked_up(blocks[1]) if blocks else '')


def stops(page):
    """(track or '', file, text) for each stop."""
    track = ''
    for line in re.split(r'\n(?=## |\*\*\d+\. |\*\*To look up)', page):
        if line.startswith('## '):
            track = line[3:].splitlines()[0]
        found = re.match(r'\*\*\d+\. \[`[^`]+`\]\(\.\./\.\./([^)]+)\)\*\*(.*)', line, re.S)
        if found:
            yield track, found.group(1), found.group(2)
            track = ''


def pairs(source):
    """Blocks of a file: the lines of a comment, and the code up to the next comment."""
    text, code = [], []
    for line in source.splitlines():
        comment = re.match(r'\s*// ?(.*)', line)
        if comment and code:
            yield text, code
            text, code = [], []
        if comment:
            text.append(comment.group(1))
        else:
            code.append(line)
    yield text, code


def comment_of(lines):
    """Indented lines are formulas and drawings, and an empty line ends a paragraph."""
    groups = [(drawn, html.escape('\n'.join(group), quote=False)) for drawn, group in itertools.groupby(lines, lambda line: line.startswith('  '))]
    return ''.join(f'<pre>{words}</pre>' if drawn else words.replace('\n\n', '\n<br><br>\n') for drawn, words in groups)


def table_of(source):
    rows = []
    for text, code in pairs(source):
        shown = '\n'.join(code).strip('\n')
        beside = f'<pre>{html.escape(shown, quote=False)}</pre>' if shown.strip() else ''
        rows.append(f'<tr><td class="text">{comment_of(text)}</td><td class="code">{beside}</td></tr>')
    return '<table>' + '\n'.join(rows) + '</table>'


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith('-'):
        sys.exit('page.py: expected the name of the HTML file to write')
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
    with open(os.path.join(root, 'apps/tour/README.md'), encoding='utf-8') as page:
        path = list(stops(page.read()))
    out = ['<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>The tour of ricci</title><style>' + kStyle + '</style></head><body>']
    for number, (track, file, text) in enumerate(path, 1):
        if track:
            out.append(f'<h1>{marked_up(track)}</h1>')
        out.append(f'<h2 id="{file}">{number}. {file}</h2><div class="stop">{marked_up(text)}</div>')
        with open(os.path.join(root, file), encoding='utf-8') as source:
            out.append(table_of(source.read()))
    out.append('</body></html>')
    try:
        with open(sys.argv[1], 'w', encoding='utf-8') as result:
            result.write('\n'.join(out) + '\n')
    except OSError as error:
        sys.exit(f'page.py: {sys.argv[1]}: {error.strerror}')
    print(f'{sys.argv[1]}: {len(path)} files')


main()

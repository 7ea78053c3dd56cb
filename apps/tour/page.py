#!/usr/bin/env python3
"""Writes the tour as one HTML page: the text of each stop, and its file with the comments beside the code that follows them.

  apps/tour/page.py tour.html
"""
import html, os, re, sys

kStyle = """
body { font: 15px/1.45 sans-serif; margin: 2em auto; max-width: 1500px; padding: 0 1em; color: #222 }
table { border-collapse: collapse; width: 100%; table-layout: fixed }
td { vertical-align: top; padding: 0 1em 0.4em 0 }
td.text { width: 38%; color: #444; white-space: pre-wrap; font: 13px/1.4 sans-serif; overflow-wrap: anywhere }
td.code pre { margin: 0; font: 12px/1.35 monospace; background: #f6f6f4; padding: 0.3em 0.6em; white-space: pre-wrap; overflow-wrap: anywhere }
p.stop { background: #eef3f8; padding: 0.6em 0.8em }
code { background: #eee }
"""


def marked_up(text):
    text = html.escape(' '.join(text.split()), quote=False)
    text = re.sub(r'`([^`]+)`', r'<code>\1</code>', text)
    text = re.sub(r'\[([^\]]+)\]\([^)]+\)', r'\1', text)
    return re.sub(r'\*([^*]+)\*', r'<em>\1</em>', text)


def stops(page):
    """(track or '', file, text) for each stop of the page."""
    track = ''
    for line in re.split(r'\n(?=## |\*\*\d+\. )', page):
        if line.startswith('## '):
            track = line[3:].splitlines()[0]
        found = re.match(r'\*\*\d+\. \[`[^`]+`\]\(\.\./\.\./([^)]+)\)\*\*(.*)', line, re.S)
        if found:
            yield track, found.group(1), found.group(2)
            track = ''


def pairs(source):
    """Blocks of a file: the lines of a comment on lines of its own, and the code up to the next one."""
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


def table_of(source):
    rows = []
    for text, code in pairs(source):
        shown = '\n'.join(code).strip('\n')
        beside = f'<pre>{html.escape(shown, quote=False)}</pre>' if shown.strip() else ''
        words = html.escape('\n'.join(text), quote=False)
        rows.append(f'<tr><td class="text">{words}</td><td class="code">{beside}</td></tr>')
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
        out.append(f'<h2 id="{file}">{number}. {file}</h2><p class="stop">{marked_up(text)}</p>')
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

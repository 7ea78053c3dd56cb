#!/usr/bin/env python3
"""The page of the tour has every line of every stop, in order: comments on the left, code on the right."""
import html, os, re, subprocess, sys, tempfile

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
script = os.path.join(root, 'apps/tour/page.py')
failures = 0
with open(os.path.join(root, 'apps/tour/README.md'), encoding='utf-8') as tour:
    stops = len(re.findall(r'(?m)^\*\*\d+\. ', tour.read()))


def expect(name, good):
    global failures
    failures += not good
    print(('ok      ' if good else 'FAILED  ') + name)


with tempfile.TemporaryDirectory() as folder:
    page = os.path.join(folder, 'tour.html')
    done = subprocess.run([script, page], capture_output=True, text=True)
    expect('it is written', done.returncode == 0 and re.fullmatch(rf'.*: {stops} files\n', done.stdout))
    text = open(page, encoding='utf-8').read()
    expect('it needs nothing from outside', not re.search(r'<script|<link|src=|url\(', text.split('<body>')[0]))
    shown = re.findall(r'<h2 id="([^"]+)">.*?<table>(.*?)</table>', text, re.S)
    expect('a file for each stop', len(shown) == stops >= 45)
    for file, table in shown:
        cells = re.findall(r'<td class="text">(.*?)</td><td class="code">(?:<pre>(.*?)</pre>)?</td>', table, re.S)
        lines = [line for words, code in cells for line in html.unescape(words).split('\n') + html.unescape(code).split('\n')]
        with open(os.path.join(root, file), encoding='utf-8') as source:
            expected = [re.sub(r'^\s*// ?', '', line) for line in source.read().split('\n')]
        bare = lambda all_lines: [line for line in all_lines if line.strip()]
        expect(file, bare(lines) == bare(expected) and len(bare(lines)) > 5)
    bad = subprocess.run([script, os.path.join(folder, 'none/tour.html')], capture_output=True, text=True)
    expect('a folder that is not there', bad.returncode == 1 and bad.stderr.endswith('tour.html: No such file or directory\n'))
    bad = subprocess.run([script], capture_output=True, text=True)
    expect('no name', bad.returncode == 1 and bad.stderr == 'page.py: expected the name of the HTML file to write\n')

print(failures, 'failed')
sys.exit(failures > 0)

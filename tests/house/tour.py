#!/usr/bin/env python3
"""The tour explains a name before it uses it: counts the exceptions, of which there may be few. And its page (apps/tour/page.py) has every
line of every stop, in order: comments on the left, code on the right.

A stop of apps/tour/README.md is a line '**N. [`file`](path)** ...', and its text goes on to the next stop. A name is a type, concept, macro
or function that a header defines. It is explained where such a header is the stop or an earlier one, or where the text up to here has it in
backticks. The first page lists the same files. Names without a capital letter or an underscore are left out: they are words of everyday English, too.
  tour.py [-v]     -v: the names per stop
"""
import html, os, re, subprocess, sys, tempfile

kCeiling = 20
os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
kFloors = ['core', 'cuda', 'autograd', 'ops', 'models', 'data', 'apps']
kPatterns = [
    r'\b(?:struct|class|enum class|concept|using)\s+([A-Z]\w+)\b(?!\s*;)',
    r'(?m)^(?:template <[^\n]*> )?(?:inline |constexpr |\[\[nodiscard\]\] |HD |const )*[\w:<>,&\* ]+?[ &\*]([a-z_]\w+)\(',
    r'#define (\w+)',
]
kOfCuda = {'__device__', '__global__', '__host__', '__grid_constant__', '__launch_bounds__', '__align__', '__forceinline__'}
kMembers = {'Form', 'Value', 'Outputs', 'Forward', 'Backward', 'Work', 'Row', 'name_of'}  # each file has its own


def code_of(path):
    text = open(path, encoding='utf-8').read()
    return re.sub(r'#include.*|//.*', '', re.sub(r'"(\\.|[^"\\\n])*"', '""', text))


def definitions():
    found = {}
    for folder, _, files in (entry for floor in kFloors for entry in os.walk(floor)):
        for path in (os.path.join(folder, name) for name in sorted(files) if name.endswith('.h')):
            for pattern in kPatterns:
                for name in re.findall(pattern, code_of(path)):
                    found.setdefault(name, set()).add(path)
    return found


def stops():
    text = open('apps/tour/README.md', encoding='utf-8').read()
    parts = re.split(r'(?m)^\*\*\d+\. \[`[^`]+`\]\(\.\./\.\./([^)]+)\)\*\*', text)
    parts[2::2] = [re.split(r'(?m)^## ', part)[0] for part in parts[2::2]]
    return list(zip(parts[1::2], parts[2::2])), parts[0]


def minutes():
    """The minutes of each track: added up, said above its stops, and said on the first page."""
    text = open('apps/tour/README.md', encoding='utf-8').read()
    tracks = [re.split(r'(?m)^## ', part)[0] for part in re.split(r'(?m)^## Track \d.*$', text)[1:]]
    added = [sum(map(int, re.findall(r'(?m)^\*\*\d+\. \[[^\]]+\]\([^)]+\)\*\* (\d+) minutes', track))) for track in tracks]
    said = [int(re.search(r'stops, (\d+) minutes', track).group(1)) for track in tracks]
    listed = re.findall(r'(?m)^\d\. \*\*[^*]+\*\* \((\d+) minutes\)', open('README.md', encoding='utf-8').read())
    return added, said, list(map(int, listed))


def faults_of_page(stops):
    """What is wrong with the page: a list of lines."""
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        script, page = 'apps/tour/page.py', os.path.join(folder, 'tour.html')
        done = subprocess.run([script, page], capture_output=True, text=True)
        if done.returncode or not re.fullmatch(rf'.*: {len(stops)} files\n', done.stdout):
            return [f'{script} ends with {done.returncode}: {done.stdout}{done.stderr}']
        text = open(page, encoding='utf-8').read()
        for words, expected in [(os.path.join(folder, 'none/tour.html'), 'none/tour.html: No such file or directory\n'),
                                (None, 'page.py: expected the name of the HTML file to write\n')]:
            bad = subprocess.run([script] + [words] * bool(words), capture_output=True, text=True)
            if bad.returncode != 1 or not bad.stderr.endswith(expected):
                faults.append(f'{script}: expected {expected}, got {bad.stderr}')
    if re.search(r'<script|<link|src=|url\(', text.split('<body>')[0]):
        faults.append('the page needs something from outside')
    shown = re.findall(r'<h2 id="([^"]+)">.*?<table>(.*?)</table>', text, re.S)
    if len(shown) != len(stops):
        faults.append(f'the page has {len(shown)} files')
    filled = lambda lines: [line for line in lines if line.strip()]
    for file, table in shown:
        cells = re.findall(r'<td class="text">(.*?)</td><td class="code">(?:<pre>(.*?)</pre>)?</td>', table, re.S)
        lines = filled(line for words, code in cells for line in html.unescape(words).split('\n') + html.unescape(code).split('\n'))
        with open(file, encoding='utf-8') as source:
            expected = filled(re.sub(r'^\s*// ?', '', line) for line in source.read().split('\n'))
        if lines != expected or len(lines) <= 5:
            faults.append(f'the page does not have every line of {file}')
    return faults


def main():
    where, seen, total = definitions(), set(), 0
    path, before = stops()
    words = set(re.findall(r'\w+', ' '.join(re.findall(r'`[^`\n]+`', before))))
    for file, text in path:
        seen |= {file, os.path.splitext(file)[0] + '.h'}
        words |= set(re.findall(r'\w+', ' '.join(re.findall(r'`[^`\n]+`', text))))
        names = set(re.findall(r'\b[A-Za-z_]\w{2,}\b', code_of(file)))
        unknown = sorted(n for n in names if n in where and (n[0].isupper() or '_' in n) and n not in kOfCuda | kMembers | words and not where[n] & seen)
        total += len(unknown)
        words |= set(unknown)  # counted once
        if '-v' in sys.argv:
            print(f'{file}: {len(unknown)} {" ".join(unknown)}')
    with open('README.md', encoding='utf-8') as page:
        listed = re.findall(r'\]\(([^)]+)\)', page.read().split('1. **Values and the tape**')[-1].split('\n## ')[0])
    if listed != [file for file, _ in path]:
        print('README.md lists other files, or in another order:', *sorted(set(listed) ^ {file for file, _ in path}))
        return 1
    added, said, on_first_page = minutes()
    if not added == said == on_first_page:
        print('minutes of the tracks:', added, 'said above the stops:', said, 'in README.md:', on_first_page)
        return 1
    faults = faults_of_page(path)
    print(*faults, sep='\n', end='\n' if faults else '')
    print(f'{len(path)} stops, {total} names are used before they are explained; at most {kCeiling} may be')
    return 0 if not faults and len(path) >= 45 and len(where) > 500 and total <= kCeiling else 1


sys.exit(main())

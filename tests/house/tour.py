#!/usr/bin/env python3
"""The tour explains a name before it uses it: counts the exceptions, of which there are few. Its minutes are those of the files, and each file
says why. And its page (apps/tour/page.py) has every line of every stop, in order: comments on the left, code on the right.

A stop of apps/tour/README.md is a line '**N. [`file`](path)** ...', and its text ends where the next stop begins. A name is a type, concept,
macro or function that a header defines. It is explained if such a header is the stop or an earlier one, or if the text up to here has it in
backticks. A sentence that asks the reader to skip names does not explain them. Names without a capital letter or an underscore are left out, because
they are words of everyday English as well.
  tour.py [-v]       -v: the names per stop
  tour.py --write    writes the minutes into the pages
"""
import html, os, re, subprocess, sys, tempfile

kMostNames = 30
kMostMinutes = 300  # of reading, without exercises
os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
kLayers = ['core', 'cuda', 'autograd', 'ops', 'models', 'data', 'apps']
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
    for folder, _, files in (entry for layer in kLayers for entry in os.walk(layer)):
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


def reading(file):
    """Minutes at 100 words a minute, and one to find one's way."""
    with open(file, encoding='utf-8') as source:
        return len(source.read().split()) / 100 + 1


kStop = r'(\*\*\d+\. \[[^\]]+\]\(\.\./\.\./([^)]+)\)\*\*) (\d+) minutes'
kExercise = 2  # minutes
kTolerance = 2


def faults_of_minutes(path):
    """The announced minutes of the stops and tracks, compared with the files and with the first page: a list of lines."""
    with open('apps/tour/README.md', encoding='utf-8') as page:
        tracks = [re.split(r'(?m)^## ', part)[0] for part in re.split(r'(?m)^## Track \d.*$', page.read())[1:]]
    with open('README.md', encoding='utf-8') as page:
        listed = [int(minutes) for minutes in re.findall(r'(?m)^\| \[[^\]]+\]\(apps/tour/README\.md#track[^)]*\) \| (\d+) \|', page.read())]
    stops = [re.findall(kStop, track) for track in tracks]
    added = [sum(int(minutes) for _, _, minutes in track) for track in stops]
    announced = [[int(number) for number in re.search(r'(\d+) stops, (\d+) minutes', track).groups()] for track in tracks]
    faults = [f'{file}: {minutes} minutes are announced, and it takes {reading(file) + kExercise:.0f}' for track in stops
              for _, file, minutes in track if abs(int(minutes) - reading(file) - kExercise) > kTolerance]
    if announced != [[len(track), minutes] for track, minutes in zip(stops, added)] or listed != added:
        faults.append(f'minutes of the tracks: {added}, announced above the stops: {announced}, in README.md: {listed}')
    total = sum(reading(file) for file, _ in path)
    print(f'{total:.0f} minutes of reading; at most {kMostMinutes} are allowed')
    return faults + [f'{total:.0f} minutes of reading'] * (total > kMostMinutes)


def write_minutes():
    with open('apps/tour/README.md', encoding='utf-8') as page:
        text = re.sub(kStop, lambda stop: f'{stop[1]} {reading(stop[2]) + kExercise:.0f} minutes', page.read())
    tracks = re.split(r'(?m)^(?=## )', text)
    sums = []
    for i, track in enumerate(tracks):
        if track.startswith('## Track'):
            sums.append(sum(int(stop[2]) for stop in re.findall(kStop, track)))
            tracks[i] = re.sub(r'\d+ stops, \d+ minutes', f'{len(re.findall(kStop, track))} stops, {sums[-1]} minutes', track)
    with open('apps/tour/README.md', 'w', encoding='utf-8') as page:
        page.write(''.join(tracks))
    with open('README.md', encoding='utf-8') as page:
        text = page.read()
    remaining = iter(sums)
    text = re.sub(r'(?m)^(\| \[[^\]]+\]\(apps/tour/README\.md#track[^)]*\) \|) \d+ \|', lambda row: f'{row[1]} {next(remaining)} |', text)
    with open('README.md', 'w', encoding='utf-8') as page:
        page.write(text)


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


def faults_of_reasons(path):
    """The files that do not say why in their first comments: a list of lines."""
    faults = []
    for file, _ in path:
        with open(file, encoding='utf-8') as source:
            head = ' '.join(re.findall(r'(?m)//(.*)', '\n'.join(source.read().split('\n')[:25])))
        if not re.search(r'(?i)\b(because|otherwise)\b', head):
            faults.append(f'{file}: no "because" and no "otherwise" in its first comments')
    return faults


def explained_in(text):
    sentences = re.split(r'(?<=[.:;?]) ', text.replace('\n', ' '))
    return set(re.findall(r'\w+', ' '.join(re.findall(r'`[^`\n]+`', ' '.join(s for s in sentences if not re.search(r'\b[Ss]kip\b', s))))))


def main():
    if '--write' in sys.argv:
        return write_minutes()
    where, seen, total = definitions(), set(), 0
    path, before = stops()
    words = explained_in(before)
    for file, text in path:
        seen |= {file, os.path.splitext(file)[0] + '.h'}
        words |= explained_in(text)
        names = set(re.findall(r'\b[A-Za-z_]\w{2,}\b', code_of(file)))
        unknown = sorted(n for n in names if n in where and (n[0].isupper() or '_' in n) and n not in kOfCuda | kMembers | words and not where[n] & seen)
        total += len(unknown)
        words |= set(unknown)  # counted once
        if '-v' in sys.argv:
            print(f'{file}: {len(unknown)} {" ".join(unknown)}')
    faults = faults_of_minutes(path) + faults_of_reasons(path) + faults_of_page(path)
    print(*faults, sep='\n', end='\n' if faults else '')
    print(f'{len(path)} stops, {total} names are used before they are explained; at most {kMostNames} are allowed')
    return 0 if not faults and 40 <= len(path) <= 45 and len(where) > 500 and total <= kMostNames else 1


sys.exit(main())

#!/usr/bin/env python3
"""A stop of the tour uses at most six new names. Its minutes are those of the files, track 0 begins each stop with a command, and the tour's
page (apps/tour/page.py) has every line of every stop, in order: comments on the left, code on the right.

A stop of apps/tour/README.md is a line '**N. [`file`](path)** ...'. Its text ends at the next stop, a heading or a list 'To look up'. A name
is text in backticks. It is new if no earlier stop has it. Paths of files and commands are not names.
  tour.py [-v]       -v: the new names of each stop
  tour.py --write    writes the minutes into the pages
"""
import html, os, re, subprocess, sys, tempfile

kMostNames = 6
kMostMinutes = 300  # reading time, without exercises
kExercise = 2  # minutes
kTolerance = 2
os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
kStop = r'(?m)^(\*\*\d+\. \[`[^`]+`\]\(\.\./\.\./([^)]+)\)\*\*) (\d+) minutes'
kRow = r'(?m)^(\| \[[^\]]+\]\(apps/tour/README\.md#track[^)]*\) \|) (\d+) \|'
kPathOrCommand = r'[\w./]+\.(h|cpp|cu|md|yaml)|(\$ |build/|ricci ).*'


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def write(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def tracks():
    """A list of tracks; each is a list of stops (file, announced minutes, text)."""
    found = []
    for track in re.split(r'(?m)^## Track \d.*$', read('apps/tour/README.md'))[1:]:
        parts = re.split(kStop, re.split(r'(?m)^(?:## |\*\*To look up)', track)[0])
        found.append(list(zip(parts[2::4], map(int, parts[3::4]), parts[4::4])))
    return found


def reading(file):
    """Minutes at 100 words a minute, and one to find one's way."""
    return len(read(file).split()) / 100 + 1


def faults_of_minutes():
    """The announced minutes of the stops and tracks, compared with the files and with the first page."""
    added = [[len(track), sum(minutes for _, minutes, _ in track)] for track in tracks()]
    announced = [[int(stops), int(minutes)] for stops, minutes in re.findall(r'(?m)^(\d+) stops, (\d+) minutes', read('apps/tour/README.md'))]
    listed = [int(minutes) for _, minutes in re.findall(kRow, read('README.md'))]
    faults = [f'{file}: {minutes} minutes are announced, and it takes {reading(file) + kExercise:.0f}' for track in tracks()
              for file, minutes, _ in track if abs(minutes - reading(file) - kExercise) > kTolerance]
    if announced != added or listed != [minutes for _, minutes in added]:
        faults.append(f'stops and minutes of the tracks: {added}, announced above the stops: {announced}, in README.md: {listed}')
    total = sum(reading(file) for track in tracks() for file, _, _ in track)
    print(f'{total:.0f} minutes of reading; at most {kMostMinutes} are allowed')
    return faults + [f'{total:.0f} minutes of reading'] * (total > kMostMinutes)


def write_minutes():
    page = re.sub(kStop, lambda stop: f'{stop[1]} {reading(stop[2]) + kExercise:.0f} minutes', read('apps/tour/README.md'))
    write('apps/tour/README.md', page)
    sums = iter([(len(track), sum(minutes for _, minutes, _ in track)) for track in tracks()])
    write('apps/tour/README.md', re.sub(r'(?m)^\d+ stops, \d+ minutes', lambda _: '{} stops, {} minutes'.format(*next(sums)), page))
    sums = iter([sum(minutes for _, minutes, _ in track) for track in tracks()])
    write('README.md', re.sub(kRow, lambda row: f'{row[1]} {next(sums)} |', read('README.md')))


def faults_of_names():
    seen, faults = set(), []
    for file, _, text in [stop for track in tracks() for stop in track]:
        names = {' '.join(name.split()) for name in re.findall(r'`([^`]+)`', re.sub(r'(?s)```.*?```', '', text))}
        new = sorted(name for name in names - seen if not re.fullmatch(kPathOrCommand, name))
        seen |= names
        if len(new) > kMostNames:
            faults.append(f'{file}: {len(new)} new names, at most {kMostNames} are allowed: {", ".join(new)}')
        if '-v' in sys.argv:
            print(f'{file}: {len(new)} {", ".join(new)}')
    return faults


def faults_of_commands():
    return [f'{file}: its text does not begin with a command and three lines of output' for file, _, text in tracks()[0]
            if not re.match(r'\.\n\n```\n\$ build/.*\n(.+\n){3,}```\n', text)]


def faults_of_page(stops):
    """The differences between the page and the files of the stops."""
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        script, page = 'apps/tour/page.py', os.path.join(folder, 'tour.html')
        done = subprocess.run([script, page], capture_output=True, text=True)
        if done.returncode or not re.fullmatch(rf'.*: {len(stops)} files\n', done.stdout):
            return [f'{script} ends with {done.returncode}: {done.stdout}{done.stderr}']
        text = read(page)
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
        cells = [(re.sub('</?pre>|<br>', '\n', words), code) for words, code in cells]
        lines = filled(line for words, code in cells for line in html.unescape(words).split('\n') + html.unescape(code).split('\n'))
        expected = filled(re.sub(r'^\s*// ?', '', line) for line in read(file).split('\n'))
        if lines != expected or len(lines) <= 5:
            faults.append(f'the page does not have every line of {file}')
    return faults


def main():
    if '--write' in sys.argv:
        return write_minutes()
    stops = [stop for track in tracks() for stop in track]
    faults = faults_of_minutes() + faults_of_names() + faults_of_commands() + faults_of_page(stops)
    print(*faults, f'{len(stops)} stops, {len(faults)} faults', sep='\n')
    return 1 if faults or not stops else 0


sys.exit(main())

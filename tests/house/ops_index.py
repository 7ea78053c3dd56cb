#!/usr/bin/env python3
"""The index of ops in ops/README.md: a row for each public function of ops/ with an argument that a tape can record (Arg, ColumnSlice).
  ops_index.py              compares the index with the headers
  ops_index.py --write      writes it"""
import os, re, sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
kPage, kHead = 'ops/README.md', '| op | signature | header |\n|---|---|---|\n'


def public_part(text):
    """The declarations in namespace ricci, without those of namespaces inside of it, and without comments."""
    text = re.sub(r'//.*', '', text)
    text = re.sub(r'namespace (?!ricci )\w+ \{.*?\n\}', '', text, flags=re.S)
    return text[text.find('namespace ricci {'):]


def rows():
    found = []
    for folder, _, names in os.walk('ops'):
        for path in (os.path.join(folder, name) for name in names if name.endswith('.h')):
            with open(path, encoding='utf-8') as file:
                text = public_part(file.read())
            for result, name, arguments in re.findall(r'(?m)^(Tensor|std::array<Tensor, \d>) (\w+)\(([^;{]*)\);', text):
                if re.search(r'\b(Arg|ColumnSlice)\b', arguments):
                    signature = re.sub(r'\s+', ' ', f'{result} {name}({arguments})')
                    header = os.path.relpath(path, 'ops')
                    found.append((name, signature, header))
    return ''.join(f'| `{name}` | `{signature}` | [{header}]({header}) |\n' for name, signature, header in sorted(found))


def main():
    with open(kPage, encoding='utf-8') as file:
        page = file.read()
    before, head, after = page.partition(kHead)
    index = re.match(r'(?:\|.*\n)*', after)[0]
    if '--write' in sys.argv:
        with open(kPage, 'w', encoding='utf-8') as file:
            file.write(before + head + rows() + after[len(index):])
        return 0
    if not head or index != rows():
        print(f'{kPage}: the index of ops differs from the headers; tests/house/ops_index.py --write corrects it')
        return 1
    print(f'{index.count(chr(10))} ops')
    return 0


sys.exit(main())

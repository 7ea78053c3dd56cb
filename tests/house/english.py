#!/usr/bin/env python3
"""Plain English in comments, messages and pages. Each row of kTurns is a turn of phrase that an editor marks, with the plainer wording in its
comment. Its limit is the largest count that is allowed, and it only falls. No word is wanted for its count.
  english.py             checks
  english.py CLASS       lists the lines of a class
C++, CUDA, CMake, shell, Python and the pages are read: comments, strings of C++ (messages and help texts), and pages outside of code."""
import os, re, sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
kPrepositions = '(?:in|by|of|for|from|to|with|on|at|through|after|before|over|under|without|against)'
kWhat = ('of is from to in on for with by as and or than at are has have see reads? writes? keeps? counts? knows? checks? holds? shows? does about '
         'after before needs? adds? exactly only').replace(' ', '|')
kNouns = 'vocabulary|runs?|steps?|tokenizers?|conversations?|template|cache|model|batch|context|windows?|layers?'
kTurns = {  # class: (limit, pattern in lower case)
    'of': (0, r'^of '),                                                 # a comment begins with its subject
    'clause': (0, r'^(?:what|which|how|who|whether) (?!.*\?)'),         # "How rows are read": "Reads rows"
    'because': (1, r'\b(?:because|otherwise)\b'),                       # only where the reason surprises
    'at_once': (0, r'\bat once\b'),                                     # together, immediately, in one call
    'training': (0, r'\btrainings\b|\b(?:a|another|each|every|one) training(?: (?:of|that|which|is|was|in|on|with|and|or|can|from|for|needs|has)\b|[.,:;)]| ?$)'),
    'first': (0, r'\bfirst (?:values|weights|start)\b'),                # initial values; a new run
    'neighbour': (5, r'\bneighbou?r(?:s|ing)?\b'),                      # adjacent, contiguous
    'piece': (58, r'\bpieces?\b'),                                       # token, pack, part
    'place': (1, r'(?<!in )(?<!last )(?<!takes )(?<!its )\bplaces?\b(?![`(:.-])'),  # position, location, source line
    'can_have': (0, r'\b(?:can|cannot) have (?:been|changed|come|made|written|read|moved|left|lost|gone)\b'),  # may have
    'another': (0, r'^errors?: .*\banother\b'),                         # the wrong X, a different X
    'twice': (0, r'^errors?: .*\btwice\b'),                             # a duplicate X
    'compound': (0, rf'\b(?:size|name|number|file|template|length) of (?:a|the|its) (?:{kNouns})\b'),  # the vocabulary size
    'random': (0, r'\b(?:draws?|drawn|drew) (?:from|by|at random|its|an? (?:token|number|row|crop|position|index|sample))\b'),  # samples
    'whole': (11, r'\bwhole\b'),                                         # full, complete, or nothing
    'chain': (18, r'\b(?:(?:that|those) of|of which|that which|those (?:that|which|who))\b'),
    'lies': (4, r'\b(?:stands?|stood|standing|lies?|lay|lying)\b'),
    'behind': (1, r'\b(?:behind|in front of)\b'),
    'speech': (9, r'\b(?:tells?|told|telling|says?|said|saying|hears?|heard|hearing)\b'),
    'colon': (29, r'(?:^ ?|[;,.(] ?)(?:empty|nothing|none|null|nullptr|any|-?[0-9]+|false|true|no): '),  # "0: none"
    'may': (10, r'\bmay\b(?! (?:not )?have\b)'),                          # can
    'amount': (7, r'\b(?:so|as) (?:many|much|few)\b'),
    'person': (0, r'\b(?:nobody|somebody|anybody|everybody|who|whom|whoever|someone|anyone)\b'),
    'what': (15, rf'(?:\b(?:{kWhat})|^|[.:;,(]) ?\bwhat\b'),               # a noun
    'relative': (16, rf'\b(?:{kPrepositions} which|whose)\b'),           # two sentences
    'which': (17, r', which\b'),
    'so_that': (0, r'\bso that\b'),
    'several': (3, r'\bseveral\b'),                                     # multiple
    'there': (3, r'\b(?:(?:that|which) (?:is|are|was|were) there|(?:where|if) there|there (?:is|are|was|were)(?: (?:no|none|any|one|an?|two|more|such|only)\b|[.;,)]| ?$))'),
    'where': (1, r'(?:(?:^|[.;:] ?)|, )where (?:there|it|that|they|this|the|an?|no|one|all)\b'),  # if
    'alone': (4, r'\balone\b'),                                         # only
    'same': (16, r'(?:^ ?|[.;:] )the same\b'),
    'beside': (0, r'\bbesides?\b'),                                     # next to
    'no_noun': (3, r'\b(?:is|are|was|were|be) (?:no|none)\b'),
    'own': (5, r"\bof (?:its|their|his|her|one's|your|our|my) own\b"),
    'go_on': (0, r'\b(?:go|goes|going|went|gone) on\b'),                # continue
    'place_of': (0, r'\bin (?:the )?place of\b'),                       # instead of
    'too': (3, r', too\b'),
    'anew': (0, r'\b(?:any ?more|anew)\b'),                             # again
    'makes_of': (3, r'\b(?:makes?|made|making)(?: [^.,; ]+){0,3} of\b'),
    'house': (2, r'\b(?:floors?|house|rooms?)\b'),
    'semicolons': (4, r'^(?:[^;{]*;){2}'),                              # one in a message
    'name': (5, r'(?<!\w)(?:at|of|to|in)(?!\w)(?! *\()|(?<![\w.>&])(?:of|in) *\('),  # a variable or a function called so
}
kOnlyIn = {'of': ['comment'], 'colon': ['comment', 'later'], 'clause': ['comment'], 'house': ['page'], 'semicolons': ['message'], 'name': ['code']}


kString = r'"((?:\\.|[^"\\])*)"'


def comments_of(path, text):
    """(line, text, starts) of each comment; starts: no comment in the line before it."""
    mark = re.compile(r'("(?:\\.|[^"\\\n])*")|(?:^|(?<=\s)|(?<=[;{}),]))//+ ?(.*)' if path.endswith(('.cpp', '.h', '.cu')) else
                      r'("(?:\\.|[^"\\\n])*")|(?:^|(?<=\s))# (.*)')
    before = False
    for number, line in enumerate(text.split('\n'), 1):
        found = next((m for m in mark.finditer(line) if m[2] is not None), None)
        own_line = bool(found) and not line[:found.start()].strip()
        if found:
            yield number, found[2], not (own_line and before)
        before = own_line


def sentences_of(path, text):
    """(kind, line, text) of everything that a reader of the file reads."""
    if path.endswith('.md'):
        inside = False
        for number, line in enumerate(text.split('\n'), 1):
            if line.startswith('```'):
                inside = not inside
            elif not inside:
                yield 'page', number, re.sub(r'`[^`]*`|\]\([^)]*\)', 'x', line)
        return
    for number, comment, starts in comments_of(path, text):
        yield 'comment' if starts else 'later', number, comment
    if path.endswith(('.cpp', '.h', '.cu')) and not path.startswith('tests/'):
        for number, line in enumerate(text.split('\n'), 1):
            code = re.split(r'(?:^|\s)//', line)[0]
            if not re.match(r'\s*#', line):
                yield from (('message', number, message) for message in re.findall(kString, code) if ' ' in message)
                yield 'code', number, re.sub(kString, '', code)


def turns_in(path, text):
    """'CLASS FILE:LINE: TEXT' of each find."""
    for kind, number, sentence in sentences_of(path, text):
        for name, (_, pattern) in kTurns.items():
            if kind in kOnlyIn.get(name, ['comment', 'later', 'message', 'page']):
                for _ in re.finditer(pattern, sentence if kind == 'code' else sentence.lower()):
                    yield f'{name} {path}:{number}: {sentence.strip()}'

kExamples = """// of a row
int m;  // how rows are read
int n;  // empty: it may be any
// It is packed, because otherwise the loads would come at once.
// Each training of a run draws from its first values the neighbouring columns of a piece, the place of the feed, and can have changed.
// Errors: another width; a key twice.
// The size of the vocabulary, whole or not, is one of those that lie behind it, and the page says so many things to whoever reads
// what it finds, in which case, whose line, which is long, so that several of them stand alone. Where there is one, it goes on.
// The same, beside what is no multiple of its own, in place of a list that it makes anew of them, too.
f("one; two; three"); Arg of;
"""


def check_rules():
    """Each turn is found in kExamples, except for the one of pages."""
    found = {line.split(' ', 1)[0] for line in turns_in('examples.cpp', kExamples)}
    missing = kTurns.keys() - found - {'house'}
    assert not missing and not list(turns_in('plain.cpp', '// Returns the rows of x.\n')), f'not found: {missing}'


def files():
    for layer in 'core cuda autograd ops models data apps tests .github'.split():
        for folder, _, names in os.walk(layer):
            yield from (os.path.join(folder, name) for name in sorted(names))
    yield from ['README.md', 'CMakeLists.txt']


def main():
    check_rules()
    self = os.path.relpath(os.path.abspath(__file__))
    found = []
    for path in files():
        if path != self and path.endswith(('.cpp', '.h', '.cu', '.cmake', 'CMakeLists.txt', '.sh', '.py', '.md')):
            with open(path, encoding='utf-8') as file:
                found += turns_in(path, file.read())
    if len(sys.argv) > 1 and sys.argv[1] in kTurns:
        print(*(line.split(' ', 1)[1] for line in found if line.split(' ', 1)[0] == sys.argv[1]), sep='\n')
        return 0
    fault = 0
    for name, (most, _) in kTurns.items():
        lines = [line for line in found if line.startswith(name + ' ')]
        print(f'{name}: {len(lines)}, at most {most}')
        if len(lines) > most:
            fault = 1
            if '-q' not in sys.argv: print(*lines, sep='\n')
    return fault


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""Do the tests notice mistakes? Each line of a LIST.txt is one mistake, a mutant: kind | file | text that is once in the file | mistake.
A text that ends with ";" is a statement, and an empty mistake leaves it out; any other text is an expression. A comment after a statement
can be part of its text. CMakeLists.txt compiles all mutants of a list into one test program (a program for each would take hours), and
the variable RICCI_MUTANT chooses one. The tests run with each of them and must fail.

    mutants.py LIST PROGRAM [--only NUMBER ...] [--jobs N]
    mutants.py --check                is each text once in its file? Nothing is compiled
    mutants.py --files LIST           names the files, for CMake
    mutants.py --plant LIST FOLDER    writes copies of the files with all mutants, and the variable that chooses one

The exit code is 1 if a mutant was not caught or its tests did not end in time, 2 if the list does not fit the sources or the tests fail
without a mutant."""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LISTS = ["attention", "gradients", "toolkit", "training"]
Mutant = collections.namedtuple("Mutant", "number place kind file text mistake")
SLOWER, LEAST = 20, 60  # tests end after this multiple of their time without a mutant, and at least these seconds: they hang
PASSED = (0, 77)  # 77: all skipped
SWITCH = """// The number of the running mutant (0: none).
#include <cstdlib>
extern "C" int ricci_mutant;
int ricci_mutant = std::getenv("RICCI_MUTANT") ? std::atoi(std::getenv("RICCI_MUTANT")) : 0;
"""


def fail(message):
    print(f"mutants: {message}", file=sys.stderr)
    sys.exit(2)


def read_list(name):
    """Numbered from 1."""
    mutants = []
    for line_number, line in enumerate((HERE / f"{name}.txt").read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        place, fields = f"{name}.txt:{line_number}", [field.strip() for field in (line + " ").split(" | ")]
        if len(fields) != 4:
            fail(f"{place}: expected kind | file | text | mistake, got '{line}'")
        mutants.append(Mutant(len(mutants) + 1, place, *fields))
    return mutants


def guarded(text, mistakes):
    """The text and its mistakes, by number, in one expression or statement."""
    statement = re.sub(r"\s*//.*", "", text)
    if statement.endswith(";"):
        return "".join(f"if (::ricci_mutant == {number}) {{ {mistake} }} else " for number, mistake in mistakes) + f"{{ {statement} }}"
    return "(" + "".join(f"::ricci_mutant == {number} ? ({mistake}) : " for number, mistake in mistakes) + f"({text}))"


def mutated(file, mutants):
    """The file with all its mutants."""
    source = (ROOT / file).read_text()
    mistakes = {}
    for mutant in mutants:
        if mutant.file != file:
            continue
        if (count := source.count(mutant.text)) != 1:
            fail(f"{mutant.place}: {file} has '{mutant.text}' {count} times, expected once")
        mistakes.setdefault(mutant.text, []).append((mutant.number, mutant.mistake))
    for text in sorted(mistakes, key=source.index, reverse=True):
        at = source.index(text)
        source = source[:at] + guarded(text, mistakes[text]) + source[at + len(text):]
    return f'extern "C" int ricci_mutant;\n#line 1 "{file}"\n' + source


def files_of(mutants):
    return sorted({mutant.file for mutant in mutants})


def plant(mutants, folder):
    for file in files_of(mutants):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(mutated(file, mutants))
    (folder / "switch.cpp").write_text(SWITCH)


def run(program, number, options, seconds=None):
    # Without the test suites that need a GPU or a broken library.
    command = [program, "--test-suite-exclude=needs *,broken *", "--abort-after=1", *options]
    environment = {name: value for name, value in os.environ.items() if name != "RICCI_TEST_ALL"}  # the short run must notice
    return subprocess.run(command, env=environment | {"RICCI_MUTANT": str(number)}, capture_output=True, text=True, timeout=seconds)


def seconds_without_mutant(program):
    """By test file, the fastest first: most mutants need only that."""
    cases = run(program, 0, ["--list-test-cases", "--reporters=xml"]).stdout
    seconds = {}
    for file in sorted(set(re.findall(r'filename="([^"]+)"', cases))):
        start = time.monotonic()
        done = run(program, 0, [f"--source-file=*{file}"])
        seconds[file] = time.monotonic() - start
        if done.returncode not in PASSED:
            fail(f"the tests of {file} fail without a mutant:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return dict(sorted(seconds.items(), key=lambda item: item[1])) or fail(f"{program} has no tests")


def outcome(program, number, seconds):
    """With the mutant: "passed", "did not end", or "failed: " and the first test case that fails."""
    result = "passed"
    for file, usual in seconds.items():
        try:
            done = run(program, number, [f"--source-file=*{file}"], max(SLOWER * usual, LEAST))
        except subprocess.TimeoutExpired:
            result = "did not end"
            continue
        if done.returncode not in PASSED:
            cases = re.findall(r"TEST CASE: +(.*)", done.stdout)
            return f"failed: {cases[-1] if cases else f'exit code {done.returncode}'}"
    return result


def main():
    parser = argparse.ArgumentParser(description="plants mistakes; the tests must notice each")
    parser.add_argument("list", nargs="?")
    parser.add_argument("program", type=pathlib.Path, nargs="?", help="with all mutants of the list; with --plant a folder")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--plant", action="store_true")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    lists = {name: read_list(name) for name in ([args.list] if args.list else LISTS)}
    if args.check:
        for mutants in lists.values():
            for file in files_of(mutants):
                mutated(file, mutants)
        return
    if not args.list or not (args.files or args.program):
        parser.error("expected a list and a program")
    mutants = lists[args.list]
    if args.files:
        print(*files_of(mutants), sep=";", end="")
        return
    if args.plant:
        plant(mutants, args.program)
        return
    program, chosen = args.program.resolve(), [mutant for mutant in mutants if not args.only or mutant.number in args.only]
    seconds = seconds_without_mutant(program)
    counts = dict.fromkeys(["failed", "passed", "did not end"], 0)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        running = {pool.submit(outcome, program, mutant.number, seconds): mutant for mutant in chosen}
        for done in concurrent.futures.as_completed(running):
            mutant, result = running[done], done.result()
            counts[result.split(":")[0]] += 1
            print(f"{mutant.place}: {mutant.kind}, {mutant.file}: {mutant.text[:60]}: tests {result}", flush=True)
    print(f"{len(chosen)} mutants: {counts['failed']} caught, {counts['passed']} not caught, {counts['did not end']} whose tests did not end")
    sys.exit(counts["failed"] < max(len(chosen), 1))


if __name__ == "__main__":
    main()

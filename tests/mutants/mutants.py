#!/usr/bin/env python3
"""Do the tests notice mistakes in the kernels of attention? Each line of attention.txt is one mistake, a mutant: a tail that is not masked,
= for +=, a missing scale, a missing rescale of the online softmax, shared keys whose gradient lacks a head, packed documents that begin one position off. All are compiled at once into a library of their own, with a variable that
chooses one; then the tests run with each of them on the emulator, and must fail.

    tests/mutants/mutants.py BUILD [--only NUMBER ...] [--jobs N]
    tests/mutants/mutants.py --check

BUILD is a folder in which ricci-tests was built; --check compares the list with the sources alone. The exit code is 1 when a mutant was not caught or its tests did not end in time, 2 when
the list does not fit the sources or the tests fail without a mutant."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TESTS = "*tests/ops/attention/*,*tests/ops/metric/*,*tests/ops/shift_and_sum/documents_test.cpp,*tests/ops/pooling/*,*tests/models/documents_test.cpp"
SLOWER = 20  # tests that take so many times as long as without a mutant are ended: nobody knows whether they would have failed
CHOICE = """// The number of the mutant that runs; 0: none.
#include <cstdlib>
extern "C" int ricci_mutant;
int ricci_mutant = std::getenv("RICCI_MUTANT") ? std::atoi(std::getenv("RICCI_MUTANT")) : 0;
"""


def fail(message):
    print(f"mutants: {message}", file=sys.stderr)
    sys.exit(2)


def read_mutants():
    """Of each line: kind, file, text, mistake; numbered from 1."""
    lines = [line for line in (HERE / "attention.txt").read_text().splitlines() if line and not line.startswith("#")]
    mutants = [[field.strip() for field in (line + " ").split(" | ")] for line in lines]
    for line, mutant in zip(lines, mutants):
        if len(mutant) != 4:
            fail(f"attention.txt: expected kind | file | text | mistake, got '{line}'")
    return mutants


def guarded(number, text, mistake):
    if text.endswith(";"):
        return f"if (::ricci_mutant == {number}) {{ {mistake} }} else {{ {text} }}"
    return f"(::ricci_mutant == {number} ? ({mistake}) : ({text}))"


def mutated(name, mutants):
    """The file with all its mutants, and the line of each."""
    source = (ROOT / name).read_text()
    places = []
    for number, (_, file, text, mistake) in enumerate(mutants, 1):
        if file != name:
            continue
        if source.count(text) != 1:
            fail(f"{name} has '{text}' {source.count(text)} times, expected once: attention.txt is older than the file")
        places.append((source.index(text), number, text, mistake))
    lines = {number: source.count("\n", 0, at) + 1 for at, number, _, _ in places}
    for at, number, text, mistake in sorted(places, reverse=True):
        source = source[:at] + guarded(number, text, mistake) + source[at + len(text):]
    return f'extern "C" int ricci_mutant;\n#line 1 "{name}"\n' + source, lines


def run(command, build):
    done = subprocess.run(command, cwd=build, shell=True, capture_output=True, text=True)
    if done.returncode:
        fail(f"{command[:200]}...\n{done.stderr[-4000:]}")
    return done.stdout


def objects_with(files, build):
    """The engine's objects that are compiled from one of the files, or include one."""
    found, current = [], None
    for line in run("ninja -t deps", build).splitlines():
        if line and not line.startswith(" "):
            current = line.split(":")[0]
        elif current and current.startswith("CMakeFiles/ricci_engine_objects.dir/") and any(line.strip().endswith("/" + file) for file in files):
            found.append(current)
            current = None
    return found


def compile_mutants(mutants, build, work):
    files = sorted({mutant[1] for mutant in mutants})
    lines = {}
    for name in files:
        text, of_file = mutated(name, mutants)
        lines |= of_file
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    (work / "choice.cpp").write_text(CHOICE)
    commands = [f"c++ -fPIC -c {work}/choice.cpp -o {work}/choice.o"]
    replaced = {}
    by_output = {re.search(r" -o (\S+)", entry["command"])[1]: entry for entry in json.loads((build / "compile_commands.json").read_text())}
    for at, output in enumerate(objects_with(files, build)):
        entry, target = by_output[output], f"{work}/{at}.o"
        source = pathlib.Path(entry["file"]).relative_to(ROOT)
        command = entry["command"].replace(f"-o {output}", f"-o {target}").replace(" -I", f" -I{work} -I", 1)
        command = command.replace(f"-c {entry['file']}", f"-c {work / source if str(source) in files else entry['file']}")
        commands.append(re.sub(r" -M[DTF]( [^ ]+\.[od])?", "", command))
        replaced[output] = target
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda command: run(command, build), commands))
    link = run("ninja -t commands libricci_programs.so", build).splitlines()[-1]
    words = [replaced.get(os.path.normpath(word), word) for word in shlex.split(link.removeprefix(": && ").removesuffix(" && :"))]
    if not set(replaced.values()) <= set(words):
        fail("the library is not linked from the engine's objects, one by one")
    words[words.index("-o") + 1] = f"{work}/libricci_programs.so"
    run(shlex.join(words + [f"{work}/choice.o"]), build)
    shutil.copy(build / "ricci-tests", work)
    return lines


def outcome(number, work, build, seconds=None):
    """With the mutant: "passed", "did not end" within so many seconds, or "failed: " and the test case that fails first."""
    environment = os.environ | {"RICCI_MUTANT": str(number), "LD_LIBRARY_PATH": f"{work}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    command = [work / "ricci-tests", f"--source-file={TESTS}", "--test-suite-exclude=needs *", "--abort-after=1"]
    try:
        done = subprocess.run(command, cwd=build, env=environment, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "did not end"
    cases = re.findall(r"TEST CASE: +(.*)", done.stdout)
    return "passed" if done.returncode == 0 else f"failed: {cases[-1] if cases else f'exit code {done.returncode}'}"


def main():
    parser = argparse.ArgumentParser(description="mutants of the kernels of attention, each to be caught by the tests")
    parser.add_argument("build", type=pathlib.Path, nargs="?")
    parser.add_argument("--check", action="store_true", help="does each text stand in its file once? Nothing is compiled")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    mutants = read_mutants()
    if args.check:
        for name in {mutant[1] for mutant in mutants}:
            mutated(name, mutants)
        return
    if not args.build:
        parser.error("expected a build folder, or --check")
    build = args.build.resolve()
    work = build / "mutants"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    lines = compile_mutants(mutants, build, work)
    start = time.monotonic()
    if (without := outcome(0, work, build)) != "passed":
        fail(f"without a mutant the tests {without}")
    seconds = SLOWER * (time.monotonic() - start)
    numbers = args.only or range(1, len(mutants) + 1)
    counts = dict.fromkeys(["failed", "passed", "did not end"], 0)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        running = {pool.submit(outcome, number, work, build, seconds): number for number in numbers}
        for done in concurrent.futures.as_completed(running):
            number, result = running[done], done.result()
            kind, file, text, _ = mutants[number - 1]
            counts[result.split(":")[0]] += 1
            print(f"{number:3} {kind:9} {file}:{lines[number]}  {text[:60]}  tests {result}", flush=True)
    print(f"{len(numbers)} mutants: {counts['failed']} caught, {counts['passed']} not caught, {counts['did not end']} whose tests did not end")
    sys.exit(counts["failed"] < len(numbers))


if __name__ == "__main__":
    main()

"""Reads the kernels of an object file, an executable or a cubin: registers, stack, code and loops. No GPU is
needed, only TOOLS."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

TOOLS = "cuobjdump and nvdisasm, of the CUDA toolkit or by 'pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm'"
REGISTERS, MAX_WARPS, MAX_BLOCKS = 65536, 64, 32  # per multiprocessor, compute capability 9.0


def find_tools():
    """Puts the folder of the tools on PATH; false if they are not found."""
    packages = pathlib.Path(sysconfig.get_path("purelib"))
    os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], "/usr/local/cuda/bin", *map(str, packages.glob("nvidia/cu*/bin"))])
    return all(map(shutil.which, ("cuobjdump", "nvdisasm")))


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def instructions(sass):
    """{kernel: [(address, text)]}"""
    kernels, current = {}, None
    for line in sass.splitlines():
        if found := re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?) *;", line):
            current.append((int(found[1], 16), found[2]))
        elif begin := re.search(r"Function : (\S+)", line):
            current = kernels.setdefault(begin[1], [])
    return kernels


def warps_per_multiprocessor(registers, threads):
    warps = (threads + 31) // 32
    of_warp = (registers + 7) // 8 * 8 * 32
    return min(REGISTERS // (of_warp * warps), MAX_WARPS // warps, MAX_BLOCKS) * warps


def written(text):
    """The consecutive registers that an instruction writes."""
    found = re.match(r"(?:@!?U?P\d+ +)?(?!ST|RED|LDGSTS|HGMMA|WARP|R2P|\wSETP|PLOP)([\w.]+) (?:U?P\w+, )*R(\d+)\b", text)
    if not found:
        return set()
    count = 4 if re.search(r"\.128|LDSM.*\.4", found[1]) else 2 if re.search(r"\.64|WIDE|LDSM.*\.2|CS2R$", found[1]) else 1
    return set(range(int(found[2]), int(found[2]) + count))


class Code:
    """The instructions of a kernel as a graph of basic blocks. The graph excludes subroutines (the slow paths of divisions), reached only by
    CALL."""

    def __init__(self, code):
        self.code = code

    @functools.cached_property
    def place(self):
        return {address: i for i, (address, _) in enumerate(self.code)}

    @functools.cached_property
    def targets(self):
        return {i: self.target(i, r"\bBRA\b") for i in range(len(self.code))}

    @functools.cached_property
    def blocks(self):
        """{first instruction: after the last}"""
        leaders = {0} | {t for t in self.targets.values() if t is not None}
        leaders |= {i + 1 for i, (_, text) in enumerate(self.code) if re.search(r"\b(BRA|EXIT|RET)\b", text)}
        leaders = sorted(i for i in leaders if i < len(self.code))
        return dict(zip(leaders, leaders[1:] + [len(self.code)]))

    @functools.cached_property
    def follow(self):
        return {first: self.following(first, end - 1) for first, end in self.blocks.items()}

    def target(self, i, branch):
        found = re.search(branch + r".*?(0x[0-9a-f]+)", self.code[i][1])
        return self.place.get(int(found[1], 16)) if found else None

    def following(self, first, last):
        text, target = self.code[last][1], self.targets[last]
        to = [] if target is None or target == first == last else [target]
        ends = re.match(r"(BRA|EXIT|RET)\b", text) and not re.search(r"BRA(\.\w+)* (!?U?P\d)", text)
        return to if ends or last + 1 == len(self.code) else to + [last + 1]

    @functools.cached_property
    def order(self):
        """The blocks in reverse postorder."""
        order, seen, stack = [], {0}, [(0, iter(self.follow[0]))]
        while stack:
            block, rest = stack[-1]
            after = next((b for b in rest if b not in seen), None)
            if after is None:
                order.append(block)
                stack.pop()
            else:
                seen.add(after)
                stack.append((after, iter(self.follow[after])))
        return order[::-1]

    @functools.cached_property
    def loops(self):
        """Natural loops {header: blocks} of branches to a block that dominates them."""
        number = {block: i for i, block in enumerate(self.order)}
        before = {block: [] for block in self.order}
        for block in self.order:
            for after in self.follow[block]:
                before[after].append(block)
        dominator = {0: 0}

        def common(a, b):
            while a != b:
                if number[a] > number[b]:
                    a = dominator[a]
                else:
                    b = dominator[b]
            return a

        changed = True
        while changed:
            changed = False
            for block in self.order[1:]:
                known = [b for b in before[block] if b in dominator]
                new = known[0]
                for b in known[1:]:
                    new = common(new, b)
                changed |= dominator.get(block) != new
                dominator[block] = new
        loops = {}
        for block in self.order:
            for head in self.follow[block]:
                if common(head, block) != head:
                    continue
                body, work = loops.setdefault(head, {head}), [block]
                while work:
                    if (b := work.pop()) not in body:
                        body.add(b)
                        work += before[b]
        return loops

    def texts(self, blocks):
        return [self.code[i][1] for first in sorted(blocks) for i in range(first, self.blocks[first])]

    def innermost_loops(self):
        return [body for head, body in sorted(self.loops.items()) if not any(h != head and h in body for h in self.loops)]

    def split_stores(self):
        """Stores of 16 bytes that the compiler has split: four of 32 bits, one after the other, at +0, +4, +8 and +c of one base."""
        store = re.compile(r"(?:@!?U?P\d+ +)?(STG|STS|ST)(?:\.E)? (?:desc\[\w+\])?\[([\w.]+)(?:\+(-?0x[0-9a-f]+))?\], R")
        stores = [found for _, text in self.code if "ST" in text and (found := store.match(text))]
        places = [(found[1], found[2], int(found[3] or "0", 16)) for found in stores]
        return sum(
            all(places[i + j] == (kind, base, offset + 4 * j) for j in range(4)) and offset % 16 == 0
            for i, (kind, base, offset) in enumerate(places[:-3])
        )

    def changed_operands(self):
        """Left operands of wgmma, four registers each. A loop writes some of them, but not all, before the tensor cores read them."""
        changed = set()
        for texts in map(self.texts, self.loops.values()):
            for i, text in enumerate(texts):
                if not (found := re.match(r"HGMMA\S* R\d+, R(\d+), gdesc", text)):
                    continue
                operand = set(range(int(found[1]), int(found[1]) + 4))
                before, everywhere = (set().union(*map(written, part)) & operand for part in (texts[:i], texts))
                if everywhere and before != operand:
                    changed.add(text)
        return len(changed)

    def calls(self, text):
        """The instructions of the subroutine that a CALL goes to."""
        found = re.search(r"\bCALL\b.*?(0x[0-9a-f]+)", text)
        first = self.place.get(int(found[1], 16)) if found else None
        if first is None:
            return []
        last = next((i for i in range(first, len(self.code)) if re.match(r"RET\b", self.code[i][1])), len(self.code) - 1)
        return [text for _, text in self.code[first : last + 1]]


def readable(names):
    """{name: the name in the source}"""
    texts = run("c++filt", input="\n".join(names)).splitlines()
    texts = [re.sub(r"^void |ricci::|cuda_build::|(?<=\w)_kernels(?=::)", "", text) for text in texts]
    return {name: re.sub(r"^run<(.*)>\(.*\)$", r"\1", text) for name, text in zip(names, texts)}


def kernels_of(path):
    """The kernels in a file, for the newest architecture in it."""
    architectures = re.findall(r"\.sm_(\d+)(a?)\.", run("cuobjdump", "--list-elf", path)) or [("", "")]
    newest = max(architectures, key=lambda a: (int(a[0] or 0), a[1]))
    only = ["-arch", "sm_" + "".join(newest)] if newest[0] else []
    usage = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+)", run("cuobjdump", "-res-usage", *only, path))
    names = readable([name for name, *_ in usage])
    elf, code = run("cuobjdump", "-elf", *only, path), instructions(run("cuobjdump", "-sass", *only, path))
    threads = {}
    for kernel, attributes in re.findall(r"^\.nv\.info\.(\S+)\n(.*?)(?=^\.\w|\Z)", elf, re.M | re.S):
        if most := re.search(r"EIATTR_MAX_THREADS\n.*\n\s*Value:\s+(0x[0-9a-f]+)", attributes):
            threads[kernel] = int(most[1], 16)
    for name, registers, stack in usage:
        if name in code:
            yield {
                "architecture": "".join(newest),
                "name": names[name],
                "registers": int(registers),
                "stack": int(stack),
                "threads": threads.get(name, 1024),
                "code": Code(code[name]),
            }

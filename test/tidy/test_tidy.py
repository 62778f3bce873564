"""Style that a program can enforce: layers, the core's imports, lengths, banned functions, READMEs, nothing of anybody's workplace."""
import json
import os
import re
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BERTH_BUILD", os.path.join(ROOT, "build"))
SRC = os.path.join(ROOT, "src")

# Who may include whom (ARCHITECTURE.md). A layer may always include itself, proto/ and tables/.
LAYERS = {
    "base": set(),
    "model": {"base"},
    "core": {"base", "model"},
    "conf": {"base", "model"},
    "wire": {"base", "model"},
    "store": {"base", "model"},
    "client": {"base", "model", "conf", "wire"},
    "cli": {"spank", "base", "model", "conf", "wire", "client"},
    "stepd": {"spank", "base", "model", "wire"},
    "pam": {"base", "model", "conf"},
    "pmi": set(),
    "spank": {"base", "model"},
    "noded": {"spank", "base", "model", "conf", "wire", "client", "stepd"},
    "ctld": {"base", "model", "core", "conf", "wire", "store", "client"},
    "dbd": {"base", "model", "conf", "wire", "store", "client"},
    "sackd": {"base", "model", "conf", "wire", "client"},
    "sim": {"base", "model", "core", "conf", "wire", "store", "client", "cli", "ctld", "noded", "stepd"},
}
# What the core's objects may take from outside: memory, strings, the protobuf runtime, and compiler support.
CORE_IMPORTS = re.compile(
    r"^(mem\w+|str\w+|__\w*(mem|str)\w*chk|snprintf|__snprintf_chk|vsnprintf|__vsnprintf_chk|malloc|calloc|realloc|free|abort|__assert_fail|"
    r"__stack_chk_fail|__errno_location|protobuf_c_\w+|pb__\w+|__ctype_\w+|tolower|toupper|_GLOBAL_OFFSET_TABLE_|__isoc\w+|__asan_\w+|__ubsan_\w+)$")
BANNED = re.compile(r"\b(strcpy|strcat|sprintf|vsprintf|strtok|gets|atoi|tmpnam|mktemp|system|popen)\s*\(")


def sources(*folders):
    for folder in folders or sorted(os.listdir(SRC)):
        base = os.path.join(SRC, folder)
        for name in sorted(os.listdir(base)) if os.path.isdir(base) else []:
            if name.endswith((".c", ".h")):
                yield os.path.join(base, name)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


@pytest.mark.parametrize("layer", sorted(LAYERS))
def test_layer_includes_only_what_it_may(layer):
    bad = []
    for path in sources(layer):
        for found in re.findall(r'^#\s*include\s+"([^"]+)"', read(path), re.M):
            top = found.split("/")[0]
            if top in LAYERS and top != layer and top not in LAYERS[layer] and not path.endswith("_test.c"):
                bad.append(f"{os.path.relpath(path, ROOT)}: {found}")
    assert not bad, "\n".join(bad)


def test_core_imports_nothing_but_memory_and_strings():
    lib = os.path.join(BUILD, "src", "core", "libcore.a")
    if not os.path.exists(lib):
        pytest.skip("the core is not built")
    defined, wanted = set(), {}
    for name in ["src/core/libcore.a", "src/model/libmodel.a", "src/base/libbase.a"]:
        out = subprocess.run(["nm", "--defined-only", os.path.join(BUILD, name)], capture_output=True, text=True).stdout
        defined |= {line.split()[-1] for line in out.splitlines() if len(line.split()) == 3}
    out = subprocess.run(["nm", "-u", "-A", lib], capture_output=True, text=True).stdout
    for line in out.splitlines():
        wanted.setdefault(line.split()[-1], line.split(":")[1])
    bad = [f"{sym} ({where})" for sym, where in sorted(wanted.items()) if sym not in defined and not CORE_IMPORTS.match(sym)]
    assert not bad, "the core imports " + ", ".join(bad)


def function_lengths(path):
    """(name, lines) of each function of a C file in our format: opening brace alone in column 0."""
    lines = read(path).splitlines()
    start = None
    for number, line in enumerate(lines):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            head = " ".join(lines[max(0, start - 4):start])
            names = re.findall(r"(\w+)\s*\(", head)
            signature = lines[start - 1] if start else ""
            name = re.findall(r"(\w+)\s*\(", signature) or names[-1:] or ["?"]
            yield name[0], number - start - 1
            start = None


def ratchet(name, found):
    """Exceptions may only shrink: test/tidy/NAME.json lists them with the size they may have."""
    path = os.path.join(ROOT, "test", "tidy", name + ".json")
    allowed = json.loads(read(path)) if os.path.exists(path) else {}
    grown = {k: v for k, v in found.items() if v > allowed.get(k, 0)}
    assert not grown, f"over the limit and not in {name}.json (shorten them): {grown}"
    gone = [k for k in allowed if k not in found]
    assert not gone, f"now within the limit, take them out of {name}.json: {gone}"


def test_functions_are_at_most_70_lines():
    ratchet("long_functions", {f"{os.path.relpath(p, SRC)}:{n}": size for p in sources() if p.endswith(".c") for n, size in function_lengths(p) if size > 70})


def test_files_are_at_most_1000_lines():
    ratchet("long_files", {os.path.relpath(p, SRC): len(read(p).splitlines()) for p in sources() if len(read(p).splitlines()) > 1000})


def test_files_begin_by_saying_what_they_are_for():
    bad = [os.path.relpath(p, ROOT) for p in sources() if not read(p).lstrip().startswith("/*")]
    assert not bad, bad


def test_no_banned_functions():
    """In what is shipped; unit tests may take the short way."""
    bad = []
    for path in sources():
        if path.endswith("_test.c"):
            continue
        for number, line in enumerate(read(path).splitlines(), 1):
            found = BANNED.search(re.sub(r"/\*.*?\*/|\"(\\.|[^\"])*\"", "", line))
            if found and not line.lstrip().startswith("*"):
                bad.append(f"{os.path.relpath(path, ROOT)}:{number}: {found.group(1)}")
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("folder", sorted(os.listdir(SRC)))
def test_folder_has_a_readme(folder):
    if any(True for _ in sources(folder)):
        assert os.path.exists(os.path.join(SRC, folder, "README.md")), f"src/{folder} has no README.md"


def test_tables_say_what_their_rows_are():
    bad = [n for n in os.listdir(os.path.join(ROOT, "tables")) if n.endswith(".def") and not read(os.path.join(ROOT, "tables", n)).startswith("/*")]
    assert not bad, bad


# Words that are told from the others of their key without being named.
WORDS_READ_OTHERWISE = [
    "JobAcctGatherType=jobacct_gather/linux",                                           # what is neither cgroup nor none
    "PriorityType=priority/basic", "SchedulerType=sched/builtin",                       # not the other one
    "ProctrackType=proctrack/linuxproc", "ProctrackType=proctrack/pgid",                # without cgroups
    "CgroupPlugin=cgroup/v2", "Flags=no_gpu_env",                                       # not disabled; a flag that names no variable
    "SelectTypeParameters=CR_CPU", "SelectTypeParameters=CR_CPU_Memory",                # parts: CR_Core, CR_Socket, Memory
    "SelectTypeParameters=CR_Socket_Memory", "SelectTypeParameters=CR_Memory",
]
CONF_ROW = re.compile(r'^CONF_KEY\((\w+), (\w+), "([^"]*)", (\w+), "([^"]*)", "([^"]*)", (\w+), (\w+), (\w+), "([^"]*)"\)$', re.M)


def conf_rows():
    text = read(os.path.join(ROOT, "tables", "config.def"))
    rows = [dict(zip(("sym", "section", "key", "type", "default", "range", "show", "apply", "status", "doc"), found)) for found in CONF_ROW.findall(text)]
    assert len(rows) == len(re.findall(r"^CONF_KEY\(", text, re.M)) > 500, "a row that this test cannot read"
    return rows


def readers():
    """All that is shipped but what only prints the configuration."""
    return "\n".join(read(path) for path in sources() if not path.endswith("_test.c") and path != os.path.join(SRC, "conf", "show.c"))


def words(row):
    """Words of a row's range that are said to work."""
    return [w.split("=")[0] for w in row["range"].split("|") if w and w[0] not in "!?~*"] if row["type"] in ("ONE", "WORDS") else []


def choice(row):
    """Is there more than one value that would make a difference?"""
    return row["type"] not in ("ONE", "WORDS") or len(words(row)) > 1


def test_each_configuration_key_that_works_is_read():
    """Nothing accepted and ignored: a key that only `scontrol show config` knows is HARMLESS (its row says why), WARN or TODO."""
    used = set(re.findall(r"\bCONF_(\w+)", readers()))
    idle = [r["key"] for r in conf_rows() if r["status"] == "WORKS" and r["section"] != "SHOW" and choice(r) and r["sym"] not in used]
    assert not idle, f"marked WORKS, but nothing reads them: {idle}"


def test_each_word_of_a_key_that_works_is_read():
    """A word of a list that nothing looks for is ~harmless, ?told or !refused. The plain choice (the default, none) needs no code."""
    text = readers().lower()
    flags = {word.lower() for _, word in log_flags()}
    idle = []
    for row in conf_rows():
        if row["status"] == "WORKS" and choice(row):
            plain = {row["default"].lower(), "none", "off", "no"}
            plain |= flags if row["key"] == "DebugFlags" else set()
            idle += [f"{row['key']}={w}" for w in words(row) if w.lower() not in plain and not re.search(r'["/|=]%s["=/]' % re.escape(w.lower().split("/")[-1]), text)]
    assert sorted(idle) == sorted(WORDS_READ_OTHERWISE), "not looked for by name, or (in the list of this test) found now"


def log_flags():
    return re.findall(r'^LOG_FLAG\((\w+), "(\w+)"\)', read(os.path.join(ROOT, "tables", "log_flags.def")), re.M)


def test_each_word_of_debugflags_makes_a_line():
    text = readers()
    silent = [word for symbol, word in log_flags() if not re.search(r"\blog_flag\(%s," % symbol, text)]
    assert not silent and len(log_flags()) > 10, silent


def test_harmless_keys_say_why():
    bad = [r["key"] for r in conf_rows() if r["status"] == "HARMLESS" and not re.search(r"[;:]|long gone|^now |^only ", r["doc"])]
    assert not bad, f"HARMLESS without the reason (after a semicolon) why nothing depends on them: {bad}"


def test_nothing_names_a_workplace():
    out = subprocess.run(["git", "grep", "-nIE", r"/work/|\.library|shared/(bench|reference|design|mission)", "--", ".", ":!test/tidy"], cwd=ROOT, capture_output=True, text=True).stdout
    assert not out, out

#!/usr/bin/python3
"""The machine of the vm tier: kernel, initramfs, qemu, its console.

  machine.py BUILD shell     boot and give a shell on the console (Ctrl-a x ends it)
  machine.py BUILD 08 11     run these cases only, show the whole console
"""
import base64
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = """bash cat chmod chown cp cut date dirname dmesg echo env false find grep head hostname id ip kill ln ls mkdir mknod mount mv nice ps rm
rmdir sed seq setpriv setsid sleep sort stat switch_root tail tee touch tr true umount uname unshare wc pidof awk readlink basename tar gzip base64""".split()
OPTIONAL = ["crun"]
LIMIT = 900                      # only so that it ends: the machine is slow where others are busy


class Missing(Exception):
    """Something of the tier cannot be had; the text says what."""


def kernel(build):
    """Debian's cloud kernel, fetched once and kept in BUILD/vm."""
    folder = os.path.join(build, "vm")
    found = glob.glob(f"{folder}/kernel/boot/vmlinuz-*")
    if found:
        return found[0]
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise Missing("no apt-get: Debian's cloud kernel cannot be fetched")
    os.makedirs(folder, exist_ok=True)
    depends = subprocess.run(["apt-cache", "depends", "linux-image-cloud-amd64"], capture_output=True, text=True).stdout
    package = re.search(r"Depends: (linux-image-\S+)", depends)
    if not package:
        raise Missing("no package linux-image-cloud-amd64 in apt's lists")
    with tempfile.TemporaryDirectory(dir=folder) as tmp:
        got = subprocess.run(["apt-get", "download", "-q", package[1]], cwd=tmp, capture_output=True, text=True)
        debs = glob.glob(f"{tmp}/*.deb")
        if got.returncode or not debs:
            raise Missing(f"cannot fetch {package[1]}: {got.stderr.strip().splitlines()[-1:]}")
        subprocess.run(["dpkg", "-x", debs[0], f"{tmp}/x"], check=True)
        os.makedirs(f"{folder}/kernel/boot", exist_ok=True)
        for file in glob.glob(f"{tmp}/x/boot/vmlinuz-*"):
            shutil.move(file, f"{folder}/kernel/boot/")
    return glob.glob(f"{folder}/kernel/boot/vmlinuz-*")[0]


def libraries(program):
    text = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return re.findall(r"(?:=> )?(/\S+)", text)


def put(root, source, where=None):
    """A file at its own path (or `where`) in the tree, with what it is linked to."""
    target = root + (where or source)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if not os.path.exists(target):
        shutil.copy(source, target)
        if shutil.which("strip") and open(source, "rb").read(4) == b"\x7fELF":
            subprocess.run(["strip", "--strip-debug", target], capture_output=True)


def tree(build, root, extra):
    """The files of the machine."""
    for folder in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc/slurm", "vm", "root", "home", "proc", "sys", "dev", "tmp"):
        os.makedirs(f"{root}/{folder}", exist_ok=True)
    for link, to in (("bin", "usr/bin"), ("sbin", "usr/sbin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")):
        os.symlink(to, f"{root}/{link}")
    wanted = [(shutil.which(p), f"/usr/bin/{p}") for p in PROGRAMS + [p for p in OPTIONAL if shutil.which(p)]]
    missing = [p for p in PROGRAMS if not shutil.which(p)]
    if missing:
        raise Missing(f"no program {missing[0]}")
    for folder in ("bin", "sbin"):
        for name in os.listdir(f"{build}/{folder}"):
            path = f"{build}/{folder}/{name}"
            if os.access(path, os.X_OK) and os.path.isfile(path) and not name.endswith("_test"):
                wanted.append((path, f"/opt/berth/{folder}/{name}"))
    wanted.append((f"{build}/test/vm/vmtool", "/usr/bin/vmtool"))
    for source, where in wanted:
        put(root, os.path.realpath(source), where)
        for library in libraries(source):
            put(root, os.path.realpath(library), "/usr" + library if library.startswith("/lib") else library)
    for name in ("init.sh", "lib.sh"):
        put(root, f"{HERE}/{name}", f"/vm/{name}")
    for folder in ("etc", "cases"):
        for name in os.listdir(f"{HERE}/{folder}"):
            put(root, f"{HERE}/{folder}/{name}", f"/vm/{folder}/{name}")
    for name in os.listdir(f"{HERE}/etc"):
        put(root, f"{HERE}/etc/{name}", f"/etc/slurm/{name}")
    for name, text in {"/etc/passwd": "root:x:0:0::/root:/bin/bash\nalice:x:5001:5001::/home/alice:/bin/bash\n",
                       "/etc/group": "root:x:0:\nalice:x:5001:\n", "/etc/hosts": "127.0.0.1 localhost vm\n",
                       "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n", **extra}.items():
        with open(root + name, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
    os.symlink("/vm/init.sh", f"{root}/init")
    os.symlink("bash", f"{root}/usr/bin/sh")


def initramfs(build, path, extra):
    with tempfile.TemporaryDirectory() as root:
        tree(build, root, extra)
        names = subprocess.run(["find", ".", "-print0"], cwd=root, capture_output=True, check=True).stdout
        archive = subprocess.run(["cpio", "--null", "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=root, input=names, capture_output=True, check=True).stdout
        with open(path, "wb") as f:            # not packed: unpacking would cost more than loading
            f.write(archive)


def command(kernel_path, initrd):
    nodes = [a for i in (0, 1) for a in ("-object", f"memory-backend-ram,size=512M,id=m{i}", "-numa", f"node,nodeid={i},cpus={4 * i}-{4 * i + 3},memdev=m{i}")]
    return ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-M", "q35", "-cpu", "max,vendor=GenuineIntel", "-m", "1024", "-smp", "8,sockets=2,cores=2,threads=2", *nodes,
            "-nographic", "-no-reboot", "-nic", "none", "-kernel", kernel_path, "-initrd", initrd,
            "-append", "console=ttyS0 quiet panic=-1 mitigations=off"]


def prepare(build, folder, extra=None):
    """The command that boots the machine."""
    if not shutil.which("qemu-system-x86_64"):
        raise Missing("no qemu-system-x86_64 (package qemu-system-x86)")
    if not shutil.which("cpio"):
        raise Missing("no cpio")
    image = kernel(build)
    initramfs(build, f"{folder}/initrd", extra or {})
    return command(image, f"{folder}/initrd")


def life(build, folder, extra):
    """From one boot to its end; what the console says."""
    argv = prepare(build, folder, extra)
    machine = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        raw, _ = machine.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        machine.kill()
        raw, _ = machine.communicate()
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1bc", "", raw.decode(errors="replace")).replace("\r", "")


def boot(build, folder, only=()):
    """Runs all cases, or those whose names begin so; returns ({case: (exit status, output)}, console text). A machine that restarts itself (case 99) gets a second
    life, with the state it left on the console."""
    started = time.monotonic()
    text = life(build, folder, {"/vm/only": " ".join(only)} if only else None)
    state = re.search(r"@@ state\n(.*?)\n@@ state over", text, re.S)
    if state:
        carried = base64.b64decode("".join(re.findall(r"^[A-Za-z0-9+/=]+$", state[1], re.M)))
        text = text.replace(state[0], "") + life(build, folder, {"/vm/state.tgz": carried, "/vm/only": "99"})
    found = {}
    for name, body, rc in re.findall(r"@@ begin (\S+)\n(.*?)@@ end \1 (\d+)", text, re.S):
        found[name] = (int(rc), body)
    return found, text + f"\n[{time.monotonic() - started:.0f} s]"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as tmp:
        if sys.argv[2:] == ["shell"]:
            subprocess.run(prepare(os.path.abspath(sys.argv[1]), tmp, {"/vm/shell": ""}))
        else:
            results, console = boot(os.path.abspath(sys.argv[1]), tmp, sys.argv[2:])
            print(console)
            print({name: rc for name, (rc, _) in results.items()})

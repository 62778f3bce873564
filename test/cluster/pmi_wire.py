"""A task that speaks PMI by hand: pmi_wire.py 1|2 WHAT. What the server must answer is in test_mpi.py."""
import os
import socket
import sys

version, what = sys.argv[1], sys.argv[2]
pmi = socket.socket(fileno=int(os.environ["PMI_FD"]))
rank = int(os.environ["PMI_RANK"])


def line(text):
    pmi.sendall(text.encode() + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        answer += pmi.recv(1)
    return answer.decode().strip()


def record(text):
    pmi.sendall(b"%6d" % len(text) + text.encode())
    size = int(pmi.recv(6, socket.MSG_WAITALL))
    return pmi.recv(size, socket.MSG_WAITALL).decode()


print(line(f"cmd=init pmi_version={version} pmi_subversion={2 - int(version)}"))
ask = line if version == "1" else record
if what == "garbage":
    pmi.sendall(b"\0\1\2garbage;;;\n" * 100)
    print("closed", pmi.recv(1) == b"")
elif what == "spawn":
    if "PMI_SPAWNED" in os.environ:
        print("child", rank, os.environ["PMI_SIZE"], line("cmd=get kvsname=x key=parent"))
    else:
        args = [os.path.abspath(__file__), "1", "spawn"]
        lines = ["mcmd=spawn", "nprocs=2", f"execname={sys.executable}", "totspawns=1", "spawnssofar=1", f"argcnt={len(args)}"]
        lines += [f"arg{i + 1}={a}" for i, a in enumerate(args)] + ["preput_num=1", "preput_key_0=parent", "preput_val_0=port-7", "info_num=0", "endcmd"]
        print("parent", line("\n".join(lines)))
        lines[2] = "execname=/no/such/program"
elif what == "ask":
    for text in sys.argv[3:]:
        print(rank, ask(text.replace("RANK", str(rank)).replace("NEXT", str((rank + 1) % int(os.environ["PMI_SIZE"])))))
print(ask("cmd=finalize" + (";" if version == "2" else "")))

#!/bin/bash
# Records sacctmgr.txt: the commands of sacctmgr.txt itself ("$ sacctmgr ...") run on a Slurm whose database has none of the names zz*; the argument is a command that runs others there
cd "$(dirname "$0")" || exit 1
grep '^\$ ' sacctmgr.txt | while read -r _ line; do
	echo "\$ $line"
	eval "$1 $line" </dev/null 2>/tmp/record-err.$$
	rc=$?
	sed 's/^/2> /' /tmp/record-err.$$
	echo "rc=$rc"
done
rm -f /tmp/record-err.$$

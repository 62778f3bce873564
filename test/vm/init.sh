#!/bin/bash
# init.sh - first process of the machine; the second time it runs it is in a root that can be left (pivot_root refuses the initramfs)
export PATH=/opt/berth/bin:/opt/berth/sbin:/usr/sbin:/usr/bin
if [ -z "${BERTH_VM:-}" ]; then
	mkdir -p /new
	mount -t tmpfs -o size=80% root /new
	for d in usr opt etc vm root home; do cp -a /$d /new/; done
	for d in proc sys dev tmp run mnt var; do mkdir -p /new/$d; done
	chmod 1777 /new/tmp
	ln -s usr/bin /new/bin; ln -s usr/bin /new/sbin; ln -s usr/lib /new/lib; ln -s usr/lib64 /new/lib64
	export BERTH_VM=1
	exec switch_root /new /vm/init.sh
fi
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs run /run
mkdir -p /dev/pts /dev/shm; mount -t devpts pts /dev/pts; mount -t tmpfs shm /dev/shm
mount -t cgroup2 cgroup /sys/fs/cgroup
echo "+cpu +cpuset +memory +pids +io" > /sys/fs/cgroup/cgroup.subtree_control
ip link set lo up; hostname vm
for i in 0 1 2 3; do mknod -m 666 /dev/fakegpu$i c 4 $((60 + i)); done
echo 3 > /proc/sys/kernel/printk
# A disk of 40 MB to swap to, from memory itself, is not made: swap stays off, a limit is a limit.
. /vm/lib.sh
mkdir -p /var/spool/slurmctld /var/spool/slurmd /var/log/slurm /run/slurm /home/alice
chown alice /home/alice
head -c 64 /dev/urandom > /etc/slurm/slurm.key; [ ! -e /vm/state.tgz ] || tar -C / -xzf /vm/state.tgz; chmod 600 /etc/slurm/slurm.key
exec </dev/null
daemons_start || { echo "@@ daemons FAIL"; tail -n 40 /var/log/slurm/*; sinfo -R; scontrol show node; scontrol show job; vmtool poweroff; }
echo "@@ up $(cut -d' ' -f1 /proc/uptime)"
if [ -e /vm/shell ]; then setsid -c bash <>/dev/console >&0 2>&1; vmtool poweroff; fi
for case in /vm/cases/*.sh; do
	name=${case##*/}; name=${name%.sh}
	[ ! -e /vm/only ] || [[ " $(cat /vm/only) " == *" ${name%%-*} "* ]] || continue
	echo "@@ begin $name"
	( set -eu; cd /tmp; . "$case" ) > /tmp/out.$name 2>&1
	rc=$?
	[ $rc = 0 ] || { tail -n 30 /tmp/out.$name; tail -n 15 /var/log/slurm/*; }
	echo "@@ end $name $rc $(cut -d' ' -f1 /proc/uptime)"
	clean_up
done
echo "@@ done"
vmtool poweroff
sleep 60

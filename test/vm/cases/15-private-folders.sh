# NamespaceType=namespace/tmpfs: a job has its own /tmp and /dev/shm, its steps share them, nobody else sees them, and nothing stays.
printf 'NamespaceType=namespace/tmpfs\n' >> /etc/slurm/slurm.conf
printf 'AutoBasePath=true BasePath=/var/ns Dirs=/tmp,/dev/shm\n' > /etc/slurm/job_container.conf
slurmd_restart
touch /tmp/of-the-host
cd /
job=$(sbatch --parsable -o /home/job.out --chdir=/ -n2 --wrap 'touch /tmp/mine /dev/shm/mine; srun -n2 ls /tmp /dev/shm; stat -c %a /tmp; ls -d /tmp/of-the-host; sleep 100')
shown() { grep -q of-the-host /home/job.out; }
wait_for "its output" shown
want "$(grep -c '^mine' /home/job.out)" 4 "files that the steps see"
grep -q 1777 /home/job.out
want_match "$(cat /home/job.out)" "cannot access '/tmp/of-the-host'" "the host's /tmp"
[ ! -e /tmp/mine ] && [ ! -e /dev/shm/mine ]
want "$(srun -n1 --overlap --jobid=$job ls /tmp)" mine "a step that comes later"
want "$(srun -n1 --mem=40 ls /tmp)" "" "another job"
# a step's task as the user
chmod 1777 /home; want "$(setpriv --reuid=5001 --regid=5001 --clear-groups srun -n1 --mem=40 bash -c 'touch /tmp/a && ls /tmp')" a "alice"
# slurmd and slurmstepd die while the job runs: all the same nothing stays
kill -9 $(pidof slurmd); kill -9 $(pidof slurmstepd) || true
rm -f /run/slurm/slurmd.pid
scancel $job
slurmd -f /etc/slurm/slurm.conf -N vm
wait_for "the node" node_is idle
gone() { [ -z "$(ls -A /var/ns)" ] && ! grep -q /var/ns /proc/mounts; }
wait_for "the folders to be gone" gone

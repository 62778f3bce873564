# jobacct_gather/cgroup: what sstat tells are the kernel's sums of the task's cgroup: peak memory, with what was given back, no virtual memory.
sed -i 's/^TaskPlugin=.*/&\nJobAcctGatherType=jobacct_gather\/cgroup\nJobAcctGatherFrequency=1/' /etc/slurm/slurm.conf
slurmd_restart
job=$(submit -n1 --mem=90 --wrap 'srun -n1 bash -c "vmtool eat 40; while [ ! -e /tmp/enough ]; do sleep 0.2; done"')
eaten() { [[ $(sstat -nP --noconvert -o maxrss -j $job) -ge $((40 << 20)) ]]; }
wait_for "40 MB in sstat" eaten
IFS='|' read -r rss vsize node task cpu <<< "$(sstat -nP --noconvert -o maxrss,maxvmsize,maxrssnode,maxrsstask,tresusageintot -j $job)"
[ "$rss" -lt $((90 << 20)) ]
want "$vsize $node $task" "0 vm 0" "MaxVMSize, MaxRSSNode, MaxRSSTask"
want_match "$cpu" "^cpu=00:0.:..,energy=0,fs/disk=[0-9]+,mem=$rss,pages=[0-9]+,vmem=0$" TRESUsageInTot
touch /tmp/enough
finish $job
want "$(job $job JobState)" COMPLETED state

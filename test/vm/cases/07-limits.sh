# The keys of cgroup.conf become limits of the cgroups.
look='d=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/..; cat $d/memory.max $d/memory.high $d/memory.swap.max; [ -e $d/pids.current ] && echo pids'
want "$(srun -n1 --mem=100 bash -c "$look" | tr '\n' ,)" "$((100 << 20)),max,0,pids," "AllowedRAMSpace=100"
config cgroup.conf <<END
ConstrainRAMSpace=yes
ConstrainSwapSpace=yes
AllowedRAMSpace=150
AllowedSwapSpace=10
END
want "$(srun -n1 --mem=100 bash -c "$look" | tr '\n' ,)" "$((150 << 20)),$((100 << 20)),$((10 << 20))," "AllowedRAMSpace=150"
config cgroup.conf <<END
ConstrainRAMSpace=yes
MaxRAMPercent=25
MinRAMSpace=60
END
want "$(srun -n1 --mem=400 bash -c "$look" | tr '\n' ,)" "$((200 << 20)),max,max," "MaxRAMPercent=25 of 800"
want "$(srun -n1 --mem=20 bash -c "$look" | tr '\n' ,)" "$((60 << 20)),max,max," "MinRAMSpace=60"

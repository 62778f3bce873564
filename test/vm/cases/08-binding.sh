# --cpu-bind in its forms; the machine has two sockets of two cores of two threads (0-3, 4-7), memory nodes likewise.
of() { srun -l "$@" vmtool affinity | sort | cut -d' ' -f2 | tr '\n' ' '; }
want "$(of -n8)" "0 4 1 5 2 6 3 7 " "eight tasks"
want "$(of -n4 -c2 --cpu-bind=cores)" "0-1 4-5 2-3 6-7 " "cores"
want "$(of -n4 -c2 --cpu-bind=cores -m block:block)" "0-1 2-3 4-5 6-7 " "cores, block:block"
want "$(of -n8 -m block:block)" "0 1 2 3 4 5 6 7 " "block:block"
want "$(of -n2 -c4 -m block:fcyclic --cpu-bind=threads)" "0-1,4-5 2-3,6-7 " "block:fcyclic"
want "$(of -n2 -c4 --cpu-bind=sockets)" "0-3 4-7 " "sockets"
want "$(of -n2 -c4 --cpu-bind=ldoms)" "0-3 4-7 " "ldoms"
want "$(of -n2 -c4 --cpu-bind=none)" "0-7 0-7 " "none"
want "$(of -n2 -c4 --cpu-bind=map_cpu:5,2)" "5 2 " "map_cpu"
want "$(of -n2 -c4 --cpu-bind=mask_cpu:0xf0*1,3)" "4-7 0-1 " "mask_cpu"
want "$(of -n2 -c4 --cpu-bind=rank_ldom)" "0-3 4-7 " "rank_ldom"
want "$(of -n2 -c4 --cpu-bind=map_ldom:1)" "4-7 4-7 " "map_ldom"
want "$(of -n2 -c4 --cpu-bind=mask_ldom:3,2)" "0-7 4-7 " "mask_ldom"
out=$(srun -n2 --cpu-bind=v,cores -c2 bash -c 'echo $SLURM_CPU_BIND' 2>&1 | sort)
want_match "$out" "cpu-bind=MASK - vm, task  0  0 \[[0-9]+\]: mask 0x3 set" "verbose"
want_match "$out" "verbose,mask_cpu:0x3,0xc" "SLURM_CPU_BIND"

# --mem-bind sets the memory policy of a task.
of() { srun -l "$@" vmtool policy | sort | cut -d' ' -f2- | tr '\n' ,; }
want "$(of -n2 --mem-bind=rank)" "bind 1,bind 2," rank
want "$(of -n2 --mem-bind=map_mem:1,0)" "bind 2,bind 1," map_mem
want "$(of -n1 --mem-bind=mask_mem:3)" "bind 3," mask_mem
want "$(of -n1 --mem-bind=prefer,map_mem:1)" "preferred 2," prefer
want "$(of -n1 --mem-bind=local)" "local 0," local
want "$(of -n1)" "default 0," "nothing asked"
want_match "$(srun -n1 --mem-bind=v,map_mem:1 true 2>&1)" "mem-bind=MAP - vm, task  0  0 \[[0-9]+\]: mask 0x2 set" verbose

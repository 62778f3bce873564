# ConstrainDevices: a step opens its own devices and no other's; programs number those they see from 0.
look='for i in 0 1 2 3; do vmtool open /dev/fakegpu$i || true; done; vmtool open /dev/null; echo $CUDA_VISIBLE_DEVICES $SLURM_STEP_GPUS'
no="Operation not permitted"
want "$(srun -n1 bash -c "$look" | tr '\n' ,)" "$no,$no,$no,$no,ok,," "a step without devices"
want "$(srun -n1 --gres=gpu:2 bash -c "$look" | tr '\n' ,)" "ok,ok,$no,$no,ok,0,1 0,1," "a step with two"
out=$(salloc -Q -n2 --gres=gpu:3 bash -c "srun -n1 --exact --gres=gpu:1 --mem=40 sleep 5 & sleep 2; srun -n1 --exact --gres=gpu:2 --mem=40 bash -c '$look'; wait" | tr '\n' ,)
want "$out" "$no,ok,ok,$no,ok,0,1 1,2," "the second of two steps"
job=$(submit --gres=gpu:1 --wrap "$look")
finish $job
want "$(tr '\n' , < /tmp/job-$job.out)" "ok,$no,$no,$no,ok,0," "a script"
want "$(vmtool open /dev/fakegpu3)" ok "outside of jobs"

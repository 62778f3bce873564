/* ring.c - a token once around all ranks, then sums: what the tests of MPI run. "abort": rank 1 ends the job. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, size, token = 1000, sum = 0;
	char host[256];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	gethostname(host, sizeof host);
	if (argc > 1 && !strcmp(argv[1], "abort")) {
		if (rank == 1)
			MPI_Abort(MPI_COMM_WORLD, 7);
		MPI_Barrier(MPI_COMM_WORLD);
		pause();
	}
	int next = (rank + 1) % size, last = (rank + size - 1) % size;
	if (size > 1 && rank == 0) {
		MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
		MPI_Recv(&token, 1, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (size > 1) {
		MPI_Recv(&token, 1, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		token++;
		MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
	}
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d of %d on %s token %d sum %d\n", rank, size, host, rank ? 0 : token, sum);
	MPI_Finalize();
	return 0;
}

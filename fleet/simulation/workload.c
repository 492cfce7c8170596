/* Stands in for a program that uses a simulated card: it has a pid and a name, and does nothing until it is ended.
 * It ends with the simulation that started it (its number is the first argument), however that ends. */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (argc > 1 && getppid() != atoi(argv[1])) return 0; /* it ended before we asked to be told */
    for (;;) pause();
}

/*
 * Copies standard input to standard output,
 * one byte at a time.
 */
#include <stdio.h>
#define SIZE 10

struct node {
	int x;
};

static int
copy(FILE *in, FILE *out)
{
	while (1) { }
}

int main(int argc, char **argv) {
	return copy(stdin, stdout);
}

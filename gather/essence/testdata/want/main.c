@FILE { file:///in/main.c
Type{1}:	C
Title{6}:	main.c
File-Size{3}:	259
Last-Modification-Time{10}:	1000000000
MD5{32}:	41fac484cb2a175c89ec5f5b89d23d60
Description{61}:	Copies standard input to standard output, one byte at a time.
Keywords{19}:	SIZE node copy main
Comments{61}:	Copies standard input to standard output,
one byte at a time.
Full-Text{258}:	/*
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
}
recognize	C	name *.c	
summarize	5 attributes	C	

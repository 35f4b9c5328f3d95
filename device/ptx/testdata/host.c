// Runs kernels of kernels.c thread by thread. It reads, as 64-bit words: the kernel, blocks, threads of a block, the number
// of arguments; for each of these the bytes of its memory, 0 for a value, and the content or the value. It writes the memory
// of all arguments.
#include <stdio.h>
#include <stdlib.h>
#include "kernels.c"

static unsigned long word(void)
{
	unsigned long w;
	if (fread(&w, 8, 1, stdin) != 1)
		exit(1);
	return w;
}

int main(void)
{
	unsigned long kernel = word(), blocks = word(), threads = word(), arguments = word();
	unsigned long size[8], value[8];
	for (unsigned long i = 0; i < arguments; i++) {
		size[i] = word();
		if (size[i] == 0) {
			value[i] = word();
			continue;
		}
		void *memory = aligned_alloc(64, (size[i] + 63) / 64 * 64);
		if (fread(memory, 1, size[i], stdin) != size[i])
			return 1;
		value[i] = (unsigned long)memory;
	}
	union {
		unsigned long word;
		double number;
	} a = {value[2]};
	void *y = (void *)value[0];
	const void *x = (const void *)value[1];
	long n = (long)value[2], m = (long)value[3];
	THREADS = threads;
	for (BLOCK = 0; BLOCK < blocks; BLOCK++)
		for (THREAD = 0; THREAD < threads; THREAD++)
			switch (kernel) {
			case 0: axpy(y, x, a.number, m); break;
			case 1: functions(y, x, a.number, m); break;
			case 2: integers(y, x, n); break;
			case 3: conversions(y, x, n); break;
			case 4: histogram(y, x, n); break;
			case 5: collatz(y, x, n); break;
			case 6: vectors(y, x, n); break;
			default: return 1;
			}
	for (unsigned long i = 0; i < arguments; i++)
		if (size[i] != 0)
			fwrite((void *)value[i], 1, size[i], stdout);
	return 0;
}

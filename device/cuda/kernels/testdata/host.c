// Executes launches of the kernels on the CPU. The kernels are compiled from the same sources, and table.c, which the
// test writes, names them. Blocks follow one another, and so do the threads of a block; in a kernel with barriers they
// are fibers that take turns at SYNC.
//
// A job on the standard input is words of 8 bytes: base and size of the memory, which is mapped at its address; its
// content; the number of launches; for each, 64 bytes of the kernel's name, grid[3], threads, number of arguments, the
// arguments. The answer is the content of the memory.

#define _GNU_SOURCE
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

typedef unsigned long word;
extern const struct { const char *name; void (*run)(const word *); int barriers; } table[];

long host_thread, host_threads, host_block[3], host_blocks;

enum { most = 1024, stack = 1 << 15 };
static jmp_buf scheduler, fibers[most];
static int started, live[most];
static void (*kernel)(const word *);
static word args[64];

void host_sync(void) {
	if (_setjmp(fibers[host_thread]) == 0)
		_longjmp(scheduler, 1);
}

// fiber executes the kernel once for every block.
static void fiber(void) {
	for (;;) {
		kernel(args);
		live[host_thread] = 0;
		host_sync();
	}
}

// resume lets a fiber run up to its next SYNC, or to its end.
static void resume(void) {
	if (_setjmp(scheduler) != 0)
		return;
	if (host_thread < started)
		_longjmp(fibers[host_thread], 1);
	started++;
	ucontext_t first;
	getcontext(&first);
	first.uc_stack.ss_sp = malloc(stack);
	first.uc_stack.ss_size = stack;
	makecontext(&first, fiber, 0);
	setcontext(&first);
}

static void block(int barriers) {
	for (host_thread = 0; !barriers && host_thread < host_threads; host_thread++)
		kernel(args);
	if (!barriers)
		return;
	for (long t = 0; t < host_threads; t++)
		live[t] = 1;
	for (long left = host_threads; left > 0;) {
		left = 0;
		for (host_thread = 0; host_thread < host_threads; host_thread++)
			if (live[host_thread]) {
				resume();
				left += live[host_thread];
			}
	}
}

static void get(void *to, size_t bytes) {
	if (fread(to, 1, bytes, stdin) != bytes)
		exit(2);
}

static word number(void) {
	word w;
	get(&w, 8);
	return w;
}

static void launch(void) {
	char name[64];
	get(name, sizeof name);
	long grid[3] = {number(), number(), number()};
	host_threads = number(), host_blocks = grid[0];
	word n = number();
	get(args, 8 * n);
	int i = 0;
	while (strcmp(table[i].name, name) != 0)
		if (table[++i].name == 0) {
			fprintf(stderr, "no kernel %s\n", name);
			exit(3);
		}
	kernel = table[i].run;
	for (host_block[2] = 0; host_block[2] < grid[2]; host_block[2]++)
		for (host_block[1] = 0; host_block[1] < grid[1]; host_block[1]++)
			for (host_block[0] = 0; host_block[0] < grid[0]; host_block[0]++)
				block(table[i].barriers);
}

int main(void) {
	word base;
	while (fread(&base, 8, 1, stdin) == 1) {
		word size = number();
		char *memory = mmap((void *)base, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (memory != (char *)base)
			return 4;
		get(memory, size);
		for (word n = number(); n > 0; n--)
			launch();
		fwrite(memory, 1, size, stdout);
		fflush(stdout);
		munmap(memory, size);
	}
	return 0;
}

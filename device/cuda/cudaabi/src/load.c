// libcuda.a: each call of the driver API is a jump through a slot of its own, which tensileCudaOpen fills from the
// driver's library at run time. Until then every call answers CUDA_ERROR_NOT_FOUND but cuInit, which succeeds, so that
// a program starts, gorgonia.org/cu with it, where there is no driver.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "load.h"

enum { SUCCESS = 0, NOT_FOUND = 500 };

static int missing(void) { return NOT_FOUND; }
static int success(void) { return SUCCESS; }

#if defined(__x86_64__)
#define JUMP(slot) "\tjmp *" slot "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(slot) "\tadrp x16, " slot "\n\tldr x16, [x16, :lo12:" slot "]\n\tbr x16\n"
#else
#error "write the jump through a slot for this machine"
#endif

// The slots are in the same object as the jumps: another object's slots could be left out of a program by the linker.
#define SYMBOL(name, first) \
	__attribute__((used, visibility("hidden"))) void *tensileSlot_##name = (void *)first; \
	__asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n" JUMP("tensileSlot_" #name) \
		".size " #name ", .-" #name "\n");
#include "symbols.h"
#undef SYMBOL

static const struct {
	const char *name;
	void **slot;
} symbols[] = {
#define SYMBOL(name, first) {#name, &tensileSlot_##name},
#include "symbols.h"
#undef SYMBOL
};

enum { SYMBOLS = sizeof symbols / sizeof symbols[0] };

void **tensileCudaSlot(const char *symbol) {
	for (int i = 0; i < SYMBOLS; i++)
		if (strcmp(symbols[i].name, symbol) == 0)
			return symbols[i].slot;
	return NULL;
}

// Drivers before CUDA 11 have these calls without _v2, and with the same parameters.
static const char *const same[][2] = {
	{"cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease"},
	{"cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxReset"},
	{"cuDevicePrimaryCtxSetFlags_v2", "cuDevicePrimaryCtxSetFlags"},
};

static void *find(void *library, const char *name) {
	void *found = dlsym(library, name);
	for (int i = 0; found == NULL && i < (int)(sizeof same / sizeof same[0]); i++)
		if (strcmp(same[i][0], name) == 0)
			found = dlsym(library, same[i][1]);
	return found != NULL ? found : (void *)missing;
}

int tensileCudaOpen(const char *name, char **problem) {
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		const char *text = dlerror();
		*problem = strdup(text != NULL ? text : "no reason given");
		return -1;
	}
	if (dlsym(library, "cuInit") == NULL) {
		char text[256];
		snprintf(text, sizeof text, "%s is another library: it has no cuInit", name);
		*problem = strdup(text);
		dlclose(library);
		return -1;
	}
	for (int i = 0; i < SYMBOLS; i++)
		*symbols[i].slot = find(library, symbols[i].name);
	return ((int (*)(unsigned int))tensileSlot_cuInit)(0);
}

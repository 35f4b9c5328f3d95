// What libcuda.a has beside the driver's own calls.

#ifndef TENSILE_LOAD_H
#define TENSILE_LOAD_H

// tensileCudaOpen loads the driver's library and has every call go there. A call that the library lacks answers
// CUDA_ERROR_NOT_FOUND. It returns what the library's cuInit does, or -1 with a text when there is no such library, or
// it is not a driver's. The text is the caller's to free.
int tensileCudaOpen(const char *library, char **problem);

// tensileCudaSlot returns where the function is that a call goes to, by its symbol (cuMemAlloc_v2); NULL: no such
// call. A driver of our own is put there.
void **tensileCudaSlot(const char *symbol);

#endif

package cudaabi

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// program links libcuda.a and shows what its calls answer before and after they go to a driver's library.
const program = `
#include <stdio.h>
#include <cuda.h>
#include <load.h>

static int ours(CUdeviceptr *address, size_t bytes) { *address = 7 * bytes; return 2; }

static void show(const char *when) {
	CUdeviceptr address = 0;
	CUresult init = cuInit(0), got = cuMemAlloc(&address, 6);
	printf("%s: cuInit %d, cuMemAlloc %d %llu, cuMemFree %d, cuDevicePrimaryCtxRelease %d\n", when, init, got, address,
		cuMemFree(1), cuDevicePrimaryCtxRelease(4));
}

int main(int argc, char **argv) {
	char *problem = NULL;
	show("first");
	int none = tensileCudaOpen("/nowhere/libcuda.so.1", &problem);
	printf("none: %d, %d\n", none, problem != NULL);
	none = tensileCudaOpen(argv[2], &problem);
	printf("other: %d, %s\n", none, problem);
	show("still");
	printf("open: %d\n", tensileCudaOpen(argv[1], &problem));
	show("then");
	*tensileCudaSlot("cuMemAlloc_v2") = ours;
	show("last");
	printf("no slot: %d\n", tensileCudaSlot("cuMemAlloc") == NULL);
}
`

// driver is a library as that of a driver before CUDA 11, without most calls.
const driver = `
int cuInit(unsigned int flags) { return 100 + flags; }
int cuMemAlloc_v2(unsigned long long *address, unsigned long bytes) { *address = 1000 + bytes; return 0; }
int cuDevicePrimaryCtxRelease(int device) { return 10 * device; }
`

const want = `first: cuInit 0, cuMemAlloc 500 0, cuMemFree 500, cuDevicePrimaryCtxRelease 500
none: -1, 1
other: -1, ./other.so is another library: it has no cuInit
still: cuInit 0, cuMemAlloc 500 0, cuMemFree 500, cuDevicePrimaryCtxRelease 500
open: 100
then: cuInit 100, cuMemAlloc 0 1006, cuMemFree 500, cuDevicePrimaryCtxRelease 40
last: cuInit 100, cuMemAlloc 2 42, cuMemFree 500, cuDevicePrimaryCtxRelease 40
no slot: 1
`

func TestLoad(t *testing.T) {
	ours(t) // needs gcc
	out, err := exec.Command("./build.sh").CombinedOutput()
	if err != nil {
		t.Fatalf("build.sh: %v\n%s", err, out)
	}
	lib := regexp.MustCompile(`"-L([^"]*)"`).FindStringSubmatch(string(out))
	if lib == nil {
		t.Fatalf("build.sh prints %s", out)
	}
	dir := t.TempDir()
	library, binary := filepath.Join(dir, "driver.so"), filepath.Join(dir, "program")
	gcc(t, driver, "-shared", "-fPIC", "-x", "c", "-", "-o", library)
	gcc(t, "int nothing;", "-shared", "-fPIC", "-x", "c", "-", "-o", filepath.Join(dir, "other.so"))
	gcc(t, program, "-O2", "-Wall", "-I"+lib[1], "-x", "c", "-", "-L"+lib[1], "-lcuda", "-o", binary)
	run := exec.Command(binary, library, "./other.so")
	run.Dir = dir
	got, err := run.CombinedOutput()
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

package cudaabi

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A CUDA toolkit's header says the same as ours: numbers, sizes, offsets, prototypes.
func TestHeader(t *testing.T) {
	home := os.Getenv("CUDA_HOME")
	if home == "" {
		t.Skip("needs a CUDA toolkit: set CUDA_HOME to compare its cuda.h with ours")
	}
	facts := factsOf(t, ours(t))
	wrong, lacking := compare(t, facts, filepath.Join(home, "include"))
	for _, f := range wrong {
		t.Errorf("the toolkit's cuda.h differs: %s", f)
	}
	t.Logf("%d facts are equal; the toolkit's header lacks %d: %v", len(facts)-len(wrong)-len(lacking), len(lacking),
		lacking)
	if 10*len(lacking) > len(facts) {
		t.Errorf("the toolkit's header lacks %d of %d: it was not understood", len(lacking), len(facts))
	}
}

// The comparison finds each kind of difference, and none between equal headers.
func TestCompare(t *testing.T) {
	text := ours(t)
	facts := factsOf(t, text)
	if len(facts) < 590 {
		t.Errorf("%d facts, the header has more", len(facts))
	}
	for _, test := range []struct{ old, new, want string }{
		{"", "", ""},
		{"CUDA_ERROR_NOT_FOUND = 500", "CUDA_ERROR_NOT_FOUND = 501", "CUDA_ERROR_NOT_FOUND"},
		{"size_t Width, Height, Depth;\n\tCUarray", "size_t Height, Width, Depth;\n\tCUarray",
			"CUDA_ARRAY3D_DESCRIPTOR"},
		{"typedef int CUdevice;", "typedef long CUdevice;", "CUdevice"},
		{"cuMemAlloc(CUdeviceptr *address, size_t bytes)", "cuMemAlloc(CUdeviceptr *address, int bytes)",
			"cuMemAlloc_v2"},
		{"#define cuMemFree cuMemFree_v2\n", "", "cuMemFree_v2"},
	} {
		dir := t.TempDir()
		other := text
		if test.old != "" {
			if other = strings.Replace(text, test.old, test.new, 1); other == text {
				t.Fatalf("the header has no %q", test.old)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "cuda.h"), []byte(other), 0o666); err != nil {
			t.Fatal(err)
		}
		wrong, lacking := compare(t, facts, dir)
		found := slices.ContainsFunc(append(wrong, lacking...), func(f string) bool {
			return strings.Contains(f, test.want)
		})
		if found != (test.want != "") {
			t.Errorf("%q for %q: got %v and %v, want something of %q", test.new, test.old, wrong, lacking, test.want)
		}
	}
}

// Layouts of mapped memory are those of NVIDIA's documentation.
func TestLayouts(t *testing.T) {
	said := make(map[string]bool)
	for _, f := range factsOf(t, ours(t)) {
		said[f.says] = true
	}
	for _, want := range []string{
		"sizeof(CUmemGenericAllocationHandle) == 8",
		"sizeof(CUmemLocation) == 8",
		"offsetof(CUmemLocation, type) == 0 && sizeof(((CUmemLocation *)0)->type) == 4",
		"offsetof(CUmemLocation, id) == 4 && sizeof(((CUmemLocation *)0)->id) == 4",
		"sizeof(CUmemAllocationProp) == 32",
		"offsetof(CUmemAllocationProp, type) == 0 && sizeof(((CUmemAllocationProp *)0)->type) == 4",
		"offsetof(CUmemAllocationProp, requestedHandleTypes) == 4 && " +
			"sizeof(((CUmemAllocationProp *)0)->requestedHandleTypes) == 4",
		"offsetof(CUmemAllocationProp, location) == 8 && sizeof(((CUmemAllocationProp *)0)->location) == 8",
		"offsetof(CUmemAllocationProp, win32HandleMetaData) == 16 && " +
			"sizeof(((CUmemAllocationProp *)0)->win32HandleMetaData) == 8",
		"offsetof(CUmemAllocationProp, allocFlags) == 24 && sizeof(((CUmemAllocationProp *)0)->allocFlags) == 8",
		"sizeof(CUmemAccessDesc) == 12",
		"offsetof(CUmemAccessDesc, location) == 0 && sizeof(((CUmemAccessDesc *)0)->location) == 8",
		"offsetof(CUmemAccessDesc, flags) == 8 && sizeof(((CUmemAccessDesc *)0)->flags) == 4",
		"CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED == 102",
	} {
		if !said["_Static_assert("+want+`, "");`] {
			t.Errorf("the header does not say %s", want)
		}
	}
}

func ours(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install it to read the header")
	}
	text, err := os.ReadFile("src/cuda.h")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fact is a line of C that compiles where a header says the same; asks compiles where it says anything of it.
type fact struct{ name, asks, says string }

// mask is a constant that grows with CUDA's versions, and is not compared.
const mask = "CU_CTX_FLAGS_MASK"

// kernelParams is a layout that grew in CUDA 12. What we call by its name has the one before, which has another name in
// headers since CUDA 11.
const (
	kernelParams      = "CUDA_KERNEL_NODE_PARAMS"
	olderKernelParams = kernelParams + "_v1"
)

// factsOf returns what a header says: sizes, offsets and numbers as gcc sees them, and its prototypes.
func factsOf(t *testing.T, header string) []fact {
	t.Helper()
	object := filepath.Join(t.TempDir(), "header.o")
	gcc(t, header, "-g", "-fno-eliminate-unused-debug-types", "-c", "-x", "c", "-", "-o", object)
	file, err := elf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	data, err := file.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	var facts []fact
	for r := data.Reader(); ; {
		entry, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if entry == nil {
			break
		}
		name, _ := entry.Val(dwarf.AttrName).(string)
		if !strings.HasPrefix(strings.ToUpper(name), "CU") {
			continue
		}
		switch entry.Tag {
		case dwarf.TagEnumerator:
			if name != mask {
				facts = append(facts, fact{name, fmt.Sprintf("enum { ask_%s = (%[1]s) };", name),
					fmt.Sprintf("_Static_assert(%s == %v, \"\");", name, entry.Val(dwarf.AttrConstValue))})
			}
		case dwarf.TagTypedef:
			typ, err := data.Type(entry.Offset)
			if err != nil {
				t.Fatal(err)
			}
			facts = append(facts, layout(name, typ.(*dwarf.TypedefType).Type)...)
		}
	}
	for _, m := range prototype.FindAllStringSubmatch(gcc(t, header, "-E", "-P", "-x", "c", "-"), -1) {
		facts = append(facts, fact{m[1], fmt.Sprintf("void *ask_%s = (void *)%[1]s;", m[1]),
			strings.Join(strings.Fields(m[0]), " ")})
	}
	return facts
}

var prototype = regexp.MustCompile(`CUresult (cu\w+)\([^)]*\);`)

// layout returns the size of a type and where its fields are.
func layout(name string, typ dwarf.Type) []fact {
	if typ.Size() < 0 {
		return nil // of a function
	}
	facts := []fact{{name, fmt.Sprintf("enum { ask_%s = sizeof(%[1]s) };", name),
		fmt.Sprintf("_Static_assert(sizeof(%s) == %d, \"\");", name, typ.Size())}}
	if s, ok := typ.(*dwarf.StructType); ok {
		for _, f := range s.Field {
			facts = append(facts, fact{name + "." + f.Name,
				fmt.Sprintf("enum { ask_%s_%s = offsetof(%[1]s, %[2]s) };", name, f.Name),
				fmt.Sprintf("_Static_assert(offsetof(%s, %s) == %d && sizeof(((%[1]s *)0)->%[2]s) == %[4]d, \"\");",
					name, f.Name, f.ByteOffset, f.Type.Size())})
		}
	}
	return facts
}

// compare returns the facts that the cuda.h of a folder contradicts, and those that it says nothing of.
func compare(t *testing.T, facts []fact, include string) (wrong, lacking []string) {
	t.Helper()
	// a header of before CUDA 13 shows all versions of its calls then, by their symbols
	const head = "#define __CUDA_API_VERSION_INTERNAL\n#include <stddef.h>\n#include <cuda.h>\n"
	text, err := os.ReadFile(filepath.Join(include, "cuda.h"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), olderKernelParams) {
		facts = slices.Clone(facts)
		for i, f := range facts {
			facts[i].asks = strings.ReplaceAll(f.asks, kernelParams, olderKernelParams)
			facts[i].says = strings.ReplaceAll(f.says, kernelParams, olderKernelParams)
		}
	}
	known := failing(t, head, facts, include, func(f fact) string { return f.asks })
	for i, f := range facts {
		if known[i] {
			lacking = append(lacking, f.name)
		}
	}
	for i := range failing(t, head, facts, include, func(f fact) string {
		if strings.HasPrefix(f.name, "cu") {
			return "#undef " + f.name + "\n" + f.says // a macro may stand for another version of the call
		}
		return f.says
	}) {
		if !known[i] {
			wrong = append(wrong, facts[i].says)
		}
	}
	slices.Sort(wrong)
	return wrong, lacking
}

var errorLine = regexp.MustCompile(`(?m)^<stdin>:(\d+):.*\berror:`)

// failing returns the indices of the facts whose lines do not compile.
func failing(t *testing.T, head string, facts []fact, include string, line func(fact) string) map[int]bool {
	t.Helper()
	var program strings.Builder
	program.WriteString(head)
	for i, f := range facts {
		// each fact has lines of its own number
		fmt.Fprintf(&program, "#line %d\n%s\n", 10*i+1000, line(f))
	}
	c := exec.Command("gcc", "-fsyntax-only", "-w", "-fmax-errors=0", "-I", include, "-x", "c", "-")
	c.Stdin = strings.NewReader(program.String())
	out, err := c.CombinedOutput()
	found := make(map[int]bool)
	for _, m := range errorLine.FindAllStringSubmatch(string(out), -1) {
		n, _ := strconv.Atoi(m[1])
		if n < 1000 {
			t.Fatalf("gcc:\n%s", out)
		}
		found[(n-1000)/10] = true
	}
	if err != nil && len(found) == 0 {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return found
}

// gcc compiles a program, which it reads from its standard input, and returns its output.
func gcc(t *testing.T, program string, args ...string) string {
	t.Helper()
	c := exec.Command("gcc", args...)
	var stderr bytes.Buffer
	c.Stdin, c.Stderr = strings.NewReader(program), &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("gcc %v: %v\n%s", args, err, &stderr)
	}
	return string(out)
}

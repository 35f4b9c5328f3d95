package ptx

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tensile/internal/golden"
	_ "tensile/internal/long" // the flag -long
)

// clang is what kernels.ptx was made with, beside the names of files.
var clang = strings.Fields("clang-19 --target=nvptx64-nvidia-cuda -march=sm_60 -O3 -S -nostdlib -ffreestanding " +
	"-fwrapv -ffp-contract=off -Xclang -target-feature -Xclang +ptx60")

// TestCompiled holds that kernels.ptx is of kernels.c.
func TestCompiled(t *testing.T) {
	if _, err := exec.LookPath(clang[0]); err != nil {
		t.Skip("needs clang-19 to compile testdata/kernels.c: install Debian's clang-19")
	}
	file := filepath.Join(t.TempDir(), "kernels.ptx")
	command := append(clang[1:len(clang):len(clang)], "-o", file, "testdata/kernels.c")
	if out, err := exec.Command(clang[0], command...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/kernels.ptx", string(text))
}

// hostCase is a launch whose results gcc's code gives as well. An argument is a number or a slice; the first is
// written.
type hostCase struct {
	kernel string
	grid   uint32
	block  uint32
	args   []any
	width  int // of the floats that are written, 0 if they are integers
}

// hostCases lists the kernels in the order of host.c.
func hostCases() []hostCase {
	const n = 1000
	r := rand.New(rand.NewPCG(3, 3))
	wide := make([]int64, 2*n)
	for i := range wide {
		wide[i] = int64(r.Uint64()) >> r.IntN(64)
	}
	copy(wide, []int64{math.MinInt64, -1, math.MinInt64 + 1, math.MaxInt64, 0, 0, 1 << 31, -1 << 31, -1, 1 << 32,
		63, 32})
	doubles := make([]float64, n)
	for i := range doubles {
		switch doubles[i] = math.Float64frombits(r.Uint64()); i % 4 {
		case 1, 2:
			doubles[i] = r.NormFloat64() * math.Ldexp(1, r.IntN(70))
		case 3:
			doubles[i] = float64(r.IntN(2000)-1000) / 4
		}
	}
	copy(doubles, []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 5e-324, 1e-40, 0.5, 1.5,
		-2.5,
		math.MaxFloat64, 3.4028236e38, 1 << 31, 1 << 63, -1 << 63, 1<<31 - 0.5, 254.99})
	small, digits := make([]int32, n), make([]int32, n)
	for i := range small {
		small[i], digits[i] = int32(r.IntN(100_000)), int32(r.IntN(16))
	}
	x, y := randomFloats(4, 4*n), randomFloats(5, 4*n)
	a := math.Float64bits(1.7)
	return []hostCase{
		{"axpy", 8, 128, []any{y, x, a, uint64(n)}, 4},
		{"functions", 9, 117, []any{y, x, a, uint64(n)}, 4},
		{"integers", 11, 96, []any{make([]int64, 24*n), wide, uint64(n)}, 0},
		{"conversions", 8, 128, []any{make([]float64, 16*n), doubles, uint64(n)}, 8},
		{"histogram", 1, 3, []any{make([]float32, 3*16), digits, uint64(n)}, 4},
		{"collatz", 4, 256, []any{make([]int32, n), small, uint64(n)}, 0},
		{"vectors", 8, 128, []any{y, x, uint64(n - 1)}, 4},
	}
}

// TestSameBitsAsGCC runs the kernels, and compares the results with those of the same source compiled by gcc: where gcc
// is byte by byte, and everywhere with the digests in a file, which -rewrite has gcc's code make.
func TestSameBitsAsGCC(t *testing.T) {
	module := kernels(t)
	gcc := hostProgram(t)
	digests := ""
	for number, c := range hostCases() {
		got := c.run(t, module)
		if gcc != "" {
			want := c.host(t, gcc, number)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%s: byte %d is %#x, gcc's is %#x", c.kernel, i, got[i:i+8], want[i:min(i+8, len(want))])
				}
			}
		}
		digests += fmt.Sprintf("%s %x\n", c.kernel, sha256.Sum256(got))
	}
	golden.Compare(t, "testdata/digests.txt", digests)
	if gcc == "" {
		t.Skip("needs gcc to compare byte by byte: install it; the digests were compared")
	}
}

// hostProgram compiles host.c, and returns "" where there is no gcc.
func hostProgram(t *testing.T) string {
	if _, err := exec.LookPath("gcc"); err != nil {
		return ""
	}
	file := filepath.Join(t.TempDir(), "host")
	out, err := exec.Command("gcc", "-O2", "-std=gnu11", "-w", "-fwrapv", "-ffp-contract=off",
		"-o", file,
		"testdata/host.c", "-lm").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// run executes the case on the module and returns the first argument's bytes.
func (c *hostCase) run(t *testing.T, module *Module) []byte {
	m := &memory{}
	var args []uint64
	for i, a := range c.args {
		switch a := a.(type) {
		case uint64:
			args = append(args, a)
		default:
			args = append(args, m.add(bytesOf(a)))
			if all := m.allocations[len(m.allocations)-1]; i == 0 && c.kernel != "axpy" && c.kernel != "vectors" {
				clear(all.Written)
			}
		}
	}
	_, err := module.Kernel(c.kernel).Run(Launch{Grid: [3]uint32{c.grid, 1, 1}, Block: [3]uint32{c.block, 1, 1},
		Args: args,
		Seed: 7, Memory: m})
	if err != nil {
		t.Fatalf("%s: %v", c.kernel, err)
	}
	return c.plain(m.bytes(args[0]))
}

// host executes the case as gcc compiled it.
func (c *hostCase) host(t *testing.T, program string, number int) []byte {
	in := bytesOf([]uint64{uint64(number), uint64(c.grid), uint64(c.block), uint64(len(c.args))})
	for _, a := range c.args {
		if value, ok := a.(uint64); ok {
			in = append(in, bytesOf([]uint64{0, value})...)
			continue
		}
		content := bytesOf(a)
		in = append(append(in, bytesOf(uint64(len(content)))...), content...)
	}
	command := exec.Command(program)
	command.Stdin = bytes.NewReader(in)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v", c.kernel, err)
	}
	return c.plain(out[:len(bytesOf(c.args[0]))])
}

// plain makes every NaN the same one: x86 and PTX have others.
func (c *hostCase) plain(b []byte) []byte {
	b = bytes.Clone(b)
	for i := 0; c.width != 0 && i < len(b); i += c.width {
		switch {
		case c.width == 4 && binary.LittleEndian.Uint32(b[i:])<<1 > 0xff<<24:
			binary.LittleEndian.PutUint32(b[i:], nan32)
		case c.width == 8 && binary.LittleEndian.Uint64(b[i:])<<1 > 0x7ff<<53:
			binary.LittleEndian.PutUint64(b[i:], nan64)
		}
	}
	return b
}

package ptx

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// memory is allocations at addresses far from one another.
type memory struct{ allocations []*Allocation }

func (m *memory) Find(address uint64) *Allocation {
	for _, a := range m.allocations {
		if address-a.Address < uint64(len(a.Bytes)) {
			return a
		}
	}
	return nil
}

// add allocates memory with a content.
func (m *memory) add(content []byte) uint64 {
	a := m.empty(len(content))
	b := m.allocations[len(m.allocations)-1]
	copy(b.Bytes, content)
	for i := range b.Written {
		b.Written[i] = ^uint64(0)
	}
	return a
}

// empty allocates memory that nothing has written.
func (m *memory) empty(size int) uint64 {
	address := uint64(len(m.allocations)+1) << 32
	m.allocations = append(m.allocations, &Allocation{Address: address, Bytes: make([]byte, size),
		Written: make([]uint64, (size+63)/64)})
	return address
}

func (m *memory) bytes(address uint64) []byte { return m.Find(address).Bytes }

func (m *memory) float32s(address uint64) []float32 {
	b := m.bytes(address)
	all := make([]float32, len(b)/4)
	for i := range all {
		all[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return all
}

func bytesOf(data any) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, data)
	if err != nil {
		panic(err)
	}
	return b
}

func kernels(t testing.TB) *Module {
	t.Helper()
	text, err := os.ReadFile("testdata/kernels.ptx")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func randomFloats(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 0))
	all := make([]float32, n)
	for i := range all {
		all[i] = float32(r.NormFloat64())
	}
	return all
}

func TestAxpy(t *testing.T) {
	m := &memory{}
	x, y := randomFloats(1, 1000), randomFloats(2, 1000)
	px, py := m.add(bytesOf(x)), m.add(bytesOf(y))
	a := 1.7
	f, err := kernels(t).Kernel("axpy").Run(Launch{Grid: [3]uint32{8, 1, 1}, Block: [3]uint32{128, 1, 1},
		Args: []uint64{py, px, math.Float64bits(a), 999}, Memory: m})
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range m.float32s(py) {
		want := y[i] + float32(float32(a)*x[i])
		if i == 999 {
			want = y[i]
		}
		if got != want {
			t.Fatalf("y[%d] = %v, want %v", i, got, want)
		}
	}
	t.Log(f)
}

// TestBlocks runs the kernels of which threads work together, and compares with what they are to compute.
func TestBlocks(t *testing.T) {
	module := kernels(t)
	x := randomFloats(8, 2000)
	for seed := range uint64(8) {
		m := &memory{}
		px, py := m.add(bytesOf(x)), m.empty(16)
		if _, err := module.Kernel("blockSum").Run(Launch{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{128, 1, 1},
			Args: []uint64{py, px, 2000}, Seed: seed, Memory: m}); err != nil {
			t.Fatal(err)
		}
		for block, got := range m.float32s(py) {
			var sums [128]float32
			for i := range sums {
				for j := block*128 + i; j < 2000; j += 4 * 128 {
					sums[i] += x[j]
				}
			}
			for k := 64; k > 0; k /= 2 {
				for i := range k {
					sums[i] += sums[i+k]
				}
			}
			if got != sums[0] {
				t.Fatalf("seed %d: the sum of block %d is %v, want %v", seed, block, got, sums[0])
			}
		}
	}

	m := &memory{}
	px, py := m.add(bytesOf(x[:1024])), m.empty(4096)
	f, err := module.Kernel("transposed").Run(Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 8, 1},
		Args: []uint64{py, px, 32}, Memory: m})
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range m.float32s(py) {
		if want := x[i%32*32+i/32]; got != want {
			t.Fatalf("transposed: element %d is %v, want %v", i, got, want)
		}
	}
	want := Footprint{Reads: []Range{{px, px + 4096}}, Writes: []Range{{py, py + 4096}}, Instructions: f.Instructions}
	if diff := cmp.Diff(want, f); diff != "" || f.Instructions%256 != 0 || f.Instructions == 0 {
		t.Fatalf("footprint (-want +got), %d instructions:\n%s", f.Instructions, diff)
	}

	m = &memory{}
	px, py = m.add(bytesOf(x[:100])), m.add(make([]byte, 256))
	if _, err := module.Kernel("warpSum").Run(Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1},
		Args: []uint64{py, px, 100}, Memory: m}); err != nil {
		t.Fatal(err)
	}
	var sums [32]float32
	for i, v := range x[:100] {
		sums[i%32] += v
	}
	for d := 16; d > 0; d /= 2 {
		before := sums
		for i := range sums {
			sums[i] += before[i^d]
		}
	}
	for i, got := range m.float32s(py)[:32] {
		if got != sums[i] {
			t.Fatalf("warpSum: lane %d has %v, want %v", i, got, sums[i])
		}
	}

	m = &memory{}
	words := make([]uint32, 300)
	sum, most := uint64(0), uint32(0)
	var counts [5]uint32
	for i := range words {
		words[i] = uint32(i) * 2654435761
		counts[words[i]&3]++
		sum, most = sum+uint64(words[i]), max(most, words[i])
	}
	counts[4] = most
	px, py, pz := m.add(bytesOf(words)), m.add(make([]byte, 20)), m.add(make([]byte, 8))
	if _, err := module.Kernel("counted").Run(Launch{Grid: [3]uint32{3, 1, 1}, Block: [3]uint32{128, 1, 1},
		Args: []uint64{py, pz, px, 300}, Memory: m}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.bytes(py), bytesOf(counts)) || !bytes.Equal(m.bytes(pz), bytesOf(sum)) {
		t.Fatalf("counted: got %v and %v, want %v and %v", m.bytes(py), m.bytes(pz), counts, sum)
	}
}

// TestProduct multiplies matrices by tiles in shared memory, which must give the chains of fma of each element.
func TestProduct(t *testing.T) {
	const n = 64
	a, b := randomFloats(1, n*n), randomFloats(2, n*n)
	m := &memory{}
	pa, pb, pc := m.add(bytesOf(a)), m.add(bytesOf(b)), m.empty(4*n*n)
	if _, err := kernels(t).Kernel("product").Run(Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{256, 1, 1},
		Args: []uint64{pc, pa, pb, n}, Seed: 5, Memory: m}); err != nil {
		t.Fatal(err)
	}
	for i, got := range m.float32s(pc) {
		want := float32(0)
		for k := range n {
			want = fma32(a[k*n+i/n], b[k*n+i%n], want)
		}
		if got != want {
			t.Fatalf("element %d is %v, want %v", i, got, want)
		}
	}
}

// TestFootprint has accesses of all widths, apart and next to each other.
func TestFootprint(t *testing.T) {
	m, f, err := runSnippet(`st.global.u8 [%rd0+5], 1; st.global.u8 [%rd0+6], 1; ld.global.u16 %rs1, [%rd0+8];
		ld.global.v2.u64 {%rd8, %rd9}, [%rd0+16]; ld.global.u64 %rd8, [%rd0+32]; st.global.u32 [%rd0+64], 3;
		red.global.add.u32 [%rd0+68], 3; st.global.u32 [%rd1+252], 3; st.shared.u32 [buffer], 1;`, launch{})
	if err != nil {
		t.Fatal(err)
	}
	p, q := m.allocations[0].Address, m.allocations[1].Address
	want := Footprint{
		Reads:        []Range{{p + 8, p + 10}, {p + 16, p + 40}, {p + 68, p + 72}},
		Writes:       []Range{{p + 5, p + 7}, {p + 64, p + 72}, {q + 252, q + 256}},
		Instructions: 20,
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

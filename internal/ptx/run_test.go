package ptx

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"testing"
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

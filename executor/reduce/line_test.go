package reduce

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// late is a connection that hands over what it is given in pieces of any size, and lets others run in between.
type late struct {
	net.Conn
	mu     sync.Mutex
	random *rand.Rand
}

func (l *late) piece(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range l.random.IntN(8) {
		runtime.Gosched()
	}
	return 1 + l.random.IntN(n)
}

func (l *late) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return l.Conn.Read(p[:l.piece(len(p))])
}

func (l *late) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = l.Conn.Write(p[n : n+l.piece(len(p)-n)])
		n += more
	}
	return n, err
}

// lined returns a line of replicas in this process, whose connections are late in ways that follow from the seed.
func lined(replicas int, seed uint64) []*Line {
	var all []*Line
	var below io.ReadWriteCloser
	for number := range replicas {
		var above, next io.ReadWriteCloser
		if number < replicas-1 {
			a, b := net.Pipe()
			above = &late{Conn: a, random: rand.New(rand.NewPCG(seed, uint64(2*number)))}
			next = &late{Conn: b, random: rand.New(rand.NewPCG(seed, uint64(2*number+1)))}
		}
		all = append(all, New(number, replicas, below, above))
		below = next
	}
	return all
}

// gradients are of some replicas, with values of all sizes, so that the order of additions shows in the bits.
func gradients(random *rand.Rand, replicas, elements int) [][]float32 {
	all := make([][]float32, replicas)
	for r := range all {
		all[r] = make([]float32, elements)
		for i := range all[r] {
			all[r][i] = float32(random.NormFloat64() * math.Exp(8*random.NormFloat64()))
		}
	}
	return all
}

// meanOf is what graph.AllReduce says.
func meanOf(gradients [][]float32) []float32 {
	mean := slices.Clone(gradients[0])
	for _, g := range gradients[1:] {
		for i, v := range g {
			mean[i] += v
		}
	}
	for i := range mean {
		mean[i] /= float32(len(gradients))
	}
	return mean
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// reduceAll has each line take the means of its gradients, one after the other, and returns what each line says.
func reduceAll(ctx context.Context, lines []*Line, gradients [][][]float32) []error {
	errs := make([]error, len(lines))
	var replicas sync.WaitGroup
	for r, l := range lines {
		replicas.Go(func() {
			for k := range gradients {
				if errs[r] == nil {
					errs[r] = l.Mean(ctx, k, fmt.Sprint("g", k), gradients[k][r])
				}
			}
		})
	}
	replicas.Wait()
	return errs
}

func checkMeans(t *testing.T, seed uint64, replicas int, sizes ...int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	var all [][][]float32
	var want [][]float32
	for _, n := range sizes {
		g := gradients(random, replicas, n)
		want, all = append(want, meanOf(g)), append(all, g)
	}
	lines := lined(replicas, seed)
	for r, err := range reduceAll(t.Context(), lines, all) {
		if err != nil {
			t.Fatalf("seed %d: replica %d of %d: %v", seed, r, replicas, err)
		}
		lines[r].Close()
	}
	for k := range want {
		for r := range replicas {
			if !sameBits(all[k][r], want[k]) {
				t.Fatalf("seed %d: gradient %d of replica %d of %d has other bits", seed, k, r, replicas)
			}
		}
	}
}

// Means have the bits of the sum in the order of the replicas, divided by their number, whatever arrives when and in
// which pieces.
func TestMeans(t *testing.T) {
	for seed := range uint64(40) {
		checkMeans(t, seed, 2+int(seed)%4, 1, chunk-1, 7, chunk, chunk+1, 2*chunk+5)
	}
}

func FuzzMeans(f *testing.F) {
	f.Add(uint64(1), uint8(2), uint16(100))
	f.Fuzz(func(t *testing.T, seed uint64, replicas uint8, elements uint16) {
		checkMeans(t, seed, 2+int(replicas)%6, 1+int(elements), 1+int(elements)/2)
	})
}

// Replicas that do not reduce the same thing all hear of it, and take no mean any more: neither of another name, nor in
// another iteration.
func TestDifferentMeans(t *testing.T) {
	for _, last := range []struct {
		iteration int
		name      string
	}{{4, "b"}, {3, "a"}} {
		lines := lined(3, 1)
		var replicas sync.WaitGroup
		errs := make([]error, 3)
		for r, l := range lines {
			iteration, name := 4, "a"
			if r == 2 {
				iteration, name = last.iteration, last.name
			}
			replicas.Go(func() { errs[r] = l.Mean(t.Context(), iteration, name, make([]float32, 2*chunk)) })
		}
		replicas.Wait()
		for r, err := range errs {
			if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("replica %d of 3 cannot reduce ", r)) {
				t.Errorf("%+v: replica %d: %v", last, r, err)
			}
		}
		if want := "replica 1 reduces something else"; !strings.Contains(fmt.Sprint(errs[2]), want) {
			t.Errorf("%+v: replica 2: %v, want %q", last, errs[2], want)
		}
		if err := lines[0].Mean(t.Context(), 5, "a", make([]float32, 1)); err == nil {
			t.Errorf("%+v: a line that has failed goes on", last)
		}
	}
}

// When a replica ends, is cut off or is told to wait no longer, all calls end with a reason.
func TestReplicaEnds(t *testing.T) {
	why := errors.New("enough")
	for name, end := range map[string]func(l *Line, cancel context.CancelCauseFunc){
		"closed":    func(l *Line, _ context.CancelCauseFunc) { l.Close() },
		"cancelled": func(_ *Line, cancel context.CancelCauseFunc) { cancel(why) },
	} {
		t.Run(name, func(t *testing.T) {
			lines := lined(3, 2)
			ctx, cancel := context.WithCancelCause(t.Context())
			var replicas sync.WaitGroup
			errs := make([]error, 3)
			for _, r := range []int{0, 2} { // replica 1 never comes
				replicas.Go(func() { errs[r] = lines[r].Mean(ctx, 0, "a", make([]float32, 3*chunk)) })
			}
			end(lines[1], cancel)
			replicas.Wait()
			for _, r := range []int{0, 2} {
				if errs[r] == nil {
					t.Errorf("replica %d does not hear of it", r)
				} else if name == "cancelled" && !errors.Is(errs[r], why) {
					t.Errorf("replica %d: %v, want %v", r, errs[r], why)
				}
			}
			cancel(nil)
		})
	}
}

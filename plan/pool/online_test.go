package pool

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// slowOnline keeps nothing but the blocks, in order of offset, and looks at every gap between them.
type slowOnline struct {
	capacity, height int64
	blocks           []byteRange
}

// gaps are the free ranges, the last one up to the capacity; it may be empty.
func (o *slowOnline) gaps() (gaps []byteRange) {
	var at int64
	for _, b := range o.blocks {
		if at < b.lo {
			gaps = append(gaps, byteRange{at, b.lo})
		}
		at = b.hi
	}
	return append(gaps, byteRange{at, o.capacity})
}

func (o *slowOnline) alloc(size, align int64) (int64, error) {
	gaps := o.gaps()
	full := &FullError{Size: size, Align: align, Capacity: o.capacity}
	best := int64(-1)
	smallest := int64(math.MaxInt64)
	for i, g := range gaps {
		full.Free += g.hi - g.lo
		full.Largest = max(full.Largest, g.hi-g.lo)
		at := (g.lo + align - 1) / align * align
		if at+size <= g.hi && (i < len(gaps)-1 && g.hi-g.lo < smallest || best < 0) {
			best, smallest = at, g.hi-g.lo
		}
	}
	if best < 0 {
		return 0, full
	}
	o.blocks = append(o.blocks, byteRange{best, best + size})
	slices.SortFunc(o.blocks, func(a, b byteRange) int { return cmp.Compare(a.lo, b.lo) })
	o.height = max(o.height, best+size)
	return best, nil
}

func (o *slowOnline) free(at int64) {
	o.blocks = slices.DeleteFunc(o.blocks, func(b byteRange) bool { return b.lo == at })
}

// verify wants blocks and holes to cover the bytes below the top without overlap, no two holes to touch, none to lie
// at the top, and each hole to be in all three indexes.
func (o *Online) verify(t *testing.T) {
	t.Helper()
	var ranges []byteRange
	isHole := make(map[int64]bool)
	var used int64
	for _, at := range slices.Sorted(maps.Keys(o.live)) {
		ranges = append(ranges, byteRange{at, at + o.live[at]})
		used += o.live[at]
	}
	before := hole{}
	for h := range o.holes.from(0) {
		if h.size <= 0 || h.compare(before) <= 0 || o.begins[h.at] != h.size || o.ends[h.at+h.size] != h.size {
			t.Fatalf("hole %+v after %+v: begins %v, ends %v", h, before, o.begins, o.ends)
		}
		before = h
		isHole[h.at] = true
		ranges = append(ranges, byteRange{h.at, h.at + h.size})
	}
	if len(o.begins) != len(isHole) || len(o.ends) != len(isHole) || o.holes.largest() != before.size {
		t.Fatalf("%d holes, largest %d: begins %v, ends %v", len(isHole), o.holes.largest(), o.begins, o.ends)
	}
	slices.SortFunc(ranges, func(a, b byteRange) int { return cmp.Compare(a.lo, b.lo) })
	var at int64
	for i, r := range ranges {
		if r.lo != at || i > 0 && isHole[r.lo] && isHole[ranges[i-1].lo] {
			t.Fatalf("range %v begins after %d; holes are %v", r, at, isHole)
		}
		at = r.hi
	}
	if at != o.top || used != o.used || at > o.height || o.height > o.capacity || len(ranges) > 0 &&
		isHole[ranges[len(ranges)-1].lo] {
		t.Fatalf("ranges %v, used %d: top %d, used %d, height %d", ranges, used, o.top, o.used, o.height)
	}
}

// drive does what the bytes say with an Online and with the slow one: each allocates, or frees one of the blocks.
func drive(t *testing.T, capacity int64, script []byte) {
	o, slow := NewOnline(capacity), &slowOnline{capacity: cmp.Or(capacity, math.MaxInt64)}
	for ; len(script) >= 2; script = script[2:] {
		if n := len(slow.blocks); script[0]%5 < 2 && n > 0 {
			at := slow.blocks[int(script[1])%n].lo
			o.Free(at)
			slow.free(at)
			o.verify(t)
			continue
		}
		size, align := 1+int64(script[1])%40, int64(1)<<(script[0]/5%5)
		got, err := o.Alloc(size, align)
		want, wantErr := slow.alloc(size, align)
		if diff := gocmp.Diff(wantErr, err); diff != "" || got != want {
			t.Fatalf("Alloc(%d, %d) = %d, %v, want %d, %v", size, align, got, err, want, wantErr)
		}
		o.verify(t)
		if o.Height() != slow.height {
			t.Fatalf("Alloc(%d, %d): height %d, want %d", size, align, o.Height(), slow.height)
		}
	}
}

func TestOnline(t *testing.T) {
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 11))
		script := make([]byte, 2*rng.IntN(100))
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		func() {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			drive(t, []int64{0, 30, 100, 400}[seed%4], script)
		}()
	}
}

func FuzzOnline(f *testing.F) {
	f.Add(int64(0), []byte{2, 30, 2, 30, 2, 30, 0, 1, 2, 20, 7, 5})
	f.Add(int64(64), []byte{22, 39, 22, 1, 0, 0, 3, 3})
	f.Fuzz(func(t *testing.T, capacity int64, script []byte) {
		drive(t, max(capacity&^math.MinInt64, 0), script[:min(len(script), 400)])
	})
}

// A capacity changes nothing until it is reached.
func TestOnlineCapacity(t *testing.T) {
	free, bounded := NewOnline(0), NewOnline(1000)
	rng := rand.New(rand.NewPCG(1, 12))
	var live []int64
	for range 10_000 {
		if len(live) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(live))
			free.Free(live[i])
			bounded.Free(live[i])
			live = slices.Delete(live, i, i+1)
			continue
		}
		size := 1 + rng.Int64N(100)
		want, _ := free.Alloc(size, 4)
		if got, err := bounded.Alloc(size, 4); err == nil && got == want {
			live = append(live, got)
		} else if _, ok := err.(*FullError); !ok || want+size <= 1000 {
			t.Fatalf("Alloc(%d) = %d, %v, without a capacity %d", size, got, err, want)
		} else {
			free.Free(want)
		}
	}
}

func TestOnlineErrors(t *testing.T) {
	o := NewOnline(100)
	for range 10 {
		if _, err := o.Alloc(10, 1); err != nil {
			t.Fatal(err)
		}
	}
	o.Free(10)
	o.Free(20)
	o.Free(50)
	_, err := o.Alloc(21, 0)
	want := &FullError{Size: 21, Align: 1, Largest: 20, Free: 30, Capacity: 100}
	if diff := gocmp.Diff(error(want), err); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		size, align int64
		want        string
	}{
		{21, 0, "pool: 21 bytes do not fit: the largest hole has 20, and 30 of 100 bytes are free"},
		{20, 8,
			"pool: 20 bytes do not fit at a multiple of 8, though the largest hole has 20; 30 of 100 bytes are free"},
		{math.MaxInt64, 1 << 62, "pool: 9223372036854775807 bytes do not fit: the largest hole has 20, and 30 of " +
			"100 bytes are free"},
	} {
		if _, err := o.Alloc(c.size, c.align); err == nil || err.Error() != c.want {
			t.Errorf("Alloc(%d, %d): %v, want %s", c.size, c.align, err, c.want)
		}
	}
	o.verify(t)
}

// At the end of what an int64 counts nothing wraps.
func TestOnlineOverflow(t *testing.T) {
	o := NewOnline(0)
	first, err := o.Alloc(math.MaxInt64-10, 0)
	if err != nil || first != 0 {
		t.Fatal(first, err)
	}
	for _, align := range []int64{16, 1 << 62} {
		if at, err := o.Alloc(1, align); err == nil {
			t.Errorf("Alloc(1, %d) = %d", align, at)
		}
	}
	if at, err := o.Alloc(10, 0); err != nil || at != math.MaxInt64-10 || o.Height() != math.MaxInt64 {
		t.Errorf("Alloc(10) = %d, %v, height %d", at, err, o.Height())
	}
	o.verify(t)
}

func TestOnlineMisuse(t *testing.T) {
	for name, misuse := range map[string]func(o *Online){
		"Free(0): no block":               func(o *Online) { o.Free(0); o.Free(0) },
		"Free(3): no block":               func(o *Online) { o.Free(3) },
		"Alloc(0, 1): a size":             func(o *Online) { o.Alloc(0, 1) },
		"Alloc(-1, 1): a size":            func(o *Online) { o.Alloc(-1, 1) },
		"Alloc(1, 3): a size":             func(o *Online) { o.Alloc(1, 3) },
		"Alloc(1, -1): a size":            func(o *Online) { o.Alloc(1, -1) },
		"capacity -1 is negative":         func(o *Online) { NewOnline(-1) },
		"hole {size:1 at:7} is to go and": func(o *Online) { o.holes.remove(hole{1, 7}) },
	} {
		o := NewOnline(100)
		if _, err := o.Alloc(10, 0); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "pool: "+name) {
					t.Errorf("panic %q, want pool: %s", text, name)
				}
			}()
			misuse(o)
		}()
	}
}

// BenchmarkOnline frees a block and allocates another one while n are live.
func BenchmarkOnline(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("live=%d", n), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 13))
			o, live := NewOnline(0), make([]int64, n)
			size := func() int64 { return 256 * (1 + rng.Int64N(1<<rng.IntN(16))) }
			alloc := func(i int) {
				var err error
				if live[i], err = o.Alloc(size(), 256); err != nil {
					b.Fatal(err)
				}
			}
			for i := range live {
				alloc(i)
			}
			churn := func() {
				i := rng.IntN(n)
				o.Free(live[i])
				alloc(i)
			}
			for range n {
				churn()
			}
			b.ReportAllocs()
			for b.Loop() {
				churn()
			}
			b.ReportMetric(float64(len(o.begins)), "holes")
			b.ReportMetric(float64(o.Height())/float64(o.used), "height/used")
		})
	}
}

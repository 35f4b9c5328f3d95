package ptx

import (
	"bytes"
	"errors"
	"math/bits"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestForms has what random programs lack: memory, parts of registers, carries, what warps do together, branches and
// calls. Every thread leaves a word at p0, of which want says what it is to be.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		body string
		want func(i uint32) uint32
	}{
		{"ld.global.u8 %r2, [%rd4]; st.global.u32 [%rd4], %r2;", func(i uint32) uint32 { return i }},
		{"st.global.u8 [%rd4], 200; ld.global.s8 %r2, [%rd4]; st.global.u32 [%rd4], %r2;",
			func(i uint32) uint32 { return ^uint32(55) }},
		{"st.global.s8 [%rd4], -56; ld.global.u8 %rs1, [%rd4]; cvt.u32.u16 %r2, %rs1; st.global.u32 [%rd4], %r2;",
			func(i uint32) uint32 { return 200 }},
		{"st.global.u16 [%rd4], %r0; st.global.u16 [%rd4+2], 65535; ld.global.s16 %rd8, [%rd4+2];" +
			"add.s64 %rd8, %rd8, 1;" +
			"st.global.u32 [%rd4], %rd8;", func(i uint32) uint32 { return 0 }},
		{"ld.volatile.global.u32 %r2, [%rd4]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%rd4], %r2;",
			func(i uint32) uint32 { return i + 1 }},
		{"ld.relaxed.gpu.global.u32 %r2, [%rd4]; st.relaxed.sys.global.u32 [%rd4], 5;",
			func(i uint32) uint32 { return 5 }},
		{"ld.global.ca.u32 %r2, [%rd4]; st.global.wt.u32 [%rd4], 5;", func(i uint32) uint32 { return 5 }},
		{"shl.b64 %rd8, %rd5, 2; and.b64 %rd8, %rd8, 1008; add.s64 %rd9, %rd6, %rd8; setp.gt.u32 %p1, %r0, 31;" +
			"@%p1 ret;" +
			"not.b32 %r2, %r0; st.shared.v4.b32 [%rd9], {%r0, %r2, %r0, %r2};" +
			"ld.shared.v2.u64 {%rd10, %rd11}, [%rd9];" +
			"shr.u64 %rd10, %rd10, 32; st.global.u32 [%rd4], %rd10;", func(i uint32) uint32 {
			if i > 31 {
				return i
			}
			return ^i
		}},
		{"mov.u64 %rd8, depot; cvta.local.u64 %rd9, %rd8; st.u32 [%rd9], %r0; ld.local.u32 %r2, [%rd8];" +
			"shl.b32 %r2, %r2, 1;" +
			"st.global.u32 [%rd4], %r2;", func(i uint32) uint32 { return 2 * i }},
		{"mov.u64 %rd8, table+4; ld.u16 %r2, [%rd8+2]; st.global.u32 [%rd4], %r2;",
			func(i uint32) uint32 { return 0x4000 }},
		{"mov.b64 %rd8, {%r0, 7}; mov.b64 {_, %r2}, %rd8; mov.b64 {%r3, _}, %rd8; add.u32 %r2, %r2, %r3;" +
			"st.global.u32 [%rd4], %r2;",
			func(i uint32) uint32 { return i + 7 }},
		{"mov.b32 {%rs1, %rs2}, 262147; mov.b64 %rd8, {%rs1, %rs2, %rs1, %rs2}; shr.u64 %rd8, %rd8, 16;" +
			"st.global.u32 [%rd4], %rd8;",
			func(i uint32) uint32 { return 3<<16 | 4 }},
		{"mov.b32 %f1, %r0; mov.b32 %r2, %f1; st.global.u32 [%rd4], %r2;", func(i uint32) uint32 { return i }},
		{"sub.u32 %r2, %r0, 9; add.cc.u32 %r3, %r2, 9; addc.u32 %r3, 0, 0; st.global.u32 [%rd4], %r3;",
			func(i uint32) uint32 { return b2u(i < 9) }},
		{"sub.cc.s32 %r2, %r0, 9; subc.s32 %r3, 5, 0; st.global.u32 [%rd4], %r3;",
			func(i uint32) uint32 { return 5 - b2u(i < 9) }},
		{"mov.u64 %rd8, -1; cvt.u64.u32 %rd9, %r0; add.cc.u64 %rd10, %rd8, %rd9; addc.cc.u64 %rd11, 0, 0;" +
			"addc.u32 %r3, 4, 0;" +
			"mad.lo.u32 %r3, %r3, 10, 0; cvt.u32.u64 %r4, %rd11; add.u32 %r3, %r3, %r4; st.global.u32 [%rd4], %r3;",
			func(i uint32) uint32 { return 40 + b2u(i > 0) }},
		{"setp.gt.u32 %p3, %r0, 3; setp.lt.and.u32 %p1|%p2, %r0, 9, %p3; selp.u32 %r2, 1, 0, %p1;" +
			"@%p2 add.u32 %r2, %r2, 2;" +
			"st.global.u32 [%rd4], %r2;", func(i uint32) uint32 {
			return b2u(i < 9 && i > 3) + 2*b2u(i >= 9 &&
				i > 3)
		}},
		{"setp.gt.u32 %p3, %r0, 3; setp.lt.or.u32 %p1, %r0, 2, !%p3; selp.u32 %r2, 1, 0, %p1;" +
			"st.global.u32 [%rd4], %r2;",
			func(i uint32) uint32 { return b2u(i <= 3) }},
		{"cvt.s64.s8 %rd8, %r0; cvt.s32.s16 %r2, -1; st.global.u32 [%rd4], %r2;",
			func(i uint32) uint32 { return ^uint32(0) }},
		{"cvt.rn.f16.f32 %rs1, 0f3F800000; cvt.f32.f16 %f1, %rs1; st.global.f32 [%rd4], %f1;",
			func(i uint32) uint32 { return 0x3f800000 }},

		{"shfl.sync.up.b32 %r2|%p1, %r0, 3, 0, -1; @%p1 add.u32 %r2, %r2, 100; st.global.u32 [%rd4], %r2;",
			func(i uint32) uint32 {
				if i%32 < 3 {
					return i
				}
				return i - 3 + 100
			}},
		{"shfl.sync.down.b32 %r2|%p1, %r0, 3, 6159, -1; @%p1 add.u32 %r2, %r2, 100; st.global.u32 [%rd4], %r2;",
			// parts of 8
			func(i uint32) uint32 {
				if i%8 > 4 {
					return i
				}
				return i + 3 + 100
			}},
		{"shfl.sync.idx.b32 %r2, %r0, 5, 6175, -1; st.global.u32 [%rd4], %r2;",
			func(i uint32) uint32 { return i&^7 + 5 }},
		{"shfl.sync.bfly.b32 %r0, %r0, %r1, 31, -1; xor.b32 %r2, %r0, 1; st.global.u32 [%rd4], %r2;",
			func(i uint32) uint32 { return i ^ 1 }},
		{"setp.gt.u32 %p1, %r0, 40; vote.sync.ballot.b32 %r2, %p1, -1; st.global.u32 [%rd4], %r2;",
			func(i uint32) uint32 {
				if i < 32 {
					return 0
				}
				return 0xfffffe00
			}},
		{"setp.gt.u32 %p1, %r0, 40; vote.sync.any.pred %p2, %p1, -1; vote.sync.all.pred %p3, !%p1, -1;" +
			"vote.sync.uni.pred %p4, %p1, -1;" +
			"selp.u32 %r2, 1, 0, %p2; @%p3 add.u32 %r2, %r2, 2; @%p4 add.u32 %r2, %r2, 4; st.global.u32 [%rd4], %r2;",
			func(i uint32) uint32 { return b2u(i > 31) + 6*b2u(i < 32) }},
		{"setp.gt.u32 %p1, %r0, 40; @%p1 activemask.b32 %r2; @!%p1 mov.u32 %r2, 1; st.global.u32 [%rd4], %r2;",
			func(i uint32) uint32 {
				if i > 40 {
					return 0xfffffe00
				}
				return 1
			}},
		{"mov.u32 %r2, %laneid; mov.u32 %r3, %warpid; mad.lo.u32 %r2, %r3, 1000, %r2; mov.u32 %r3, %lanemask_lt;" +
			"popc.b32 %r3, %r3;" +
			"mad.lo.u32 %r2, %r3, 10000, %r2; st.global.u32 [%rd4], %r2;",
			func(i uint32) uint32 { return i/32*1000 + i%32 + i%32*10000 }},
		// clang lays the bodies of loops behind what follows them
		{"mov.u32 %r2, 0; and.b32 %r3, %r0, 7; setp.ne.u32 %p1, %r3, 0; @%p1 bra BODY;" +
			"JOIN: shfl.sync.bfly.b32 %r4, %r2, 1, 31, -1; add.u32 %r2, %r2, %r4; st.global.u32 [%rd4], %r2; ret;" +
			"BODY: add.u32 %r2, %r2, 10; sub.u32 %r3, %r3, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra BODY; bra.uni JOIN;",
			func(i uint32) uint32 { return 10 * (i&7 + (i^1)&7) }},
		// halves that shuffle among themselves, at different times
		{"mov.u32 %r5, 65535; and.b32 %r3, %r0, 16; setp.eq.u32 %p1, %r3, 0; @%p1 bra ON; shl.b32 %r5, %r5, 16;" +
			"add.u32 %r0, %r0, 1000;" +
			"ON: shfl.sync.bfly.b32 %r2, %r0, 1, 31, %r5; st.global.u32 [%rd4], %r2;",
			func(i uint32) uint32 { return i ^ 1 + 1000*(i>>4&1) }},
		{"and.b32 %r2, %r0, 3; setp.eq.u32 %p1, %r2, 1; @%p1 bra ONE; setp.eq.u32 %p1, %r2, 2; @%p1 bra TWO;" +
			"mov.u32 %r3, 7; bra END;" +
			"TWO: mov.u32 %r3, 5; bra END; ONE: mov.u32 %r3, 3; END: bar.sync 0; st.global.u32 [%rd4], %r3;",
			func(i uint32) uint32 { return [4]uint32{7, 3, 5, 7}[i&3] }},
		{"st.shared.u32 [%rd7], %r0; atom.shared.inc.u32 %r2, [%rd7], 9; atom.shared.dec.u32 %r3, [%rd7], 9; " +
			"ld.shared.u32 %r4, [%rd7]; mad.lo.u32 %r4, %r4, 100, %r3; st.global.u32 [%rd4], %r4;",
			func(i uint32) uint32 {
				up := i + 1
				if i >= 9 {
					up = 0
				}
				down := up - 1
				if up == 0 || up > 9 {
					down = 9
				}
				return down*100 + up
			}},
		{"atom.global.cas.b32 %r2, [%rd4], 9, 77; atom.global.xor.b32 %r2, [%rd4], 1;" +
			"atom.global.min.s32 %r2, [%rd4], 20;" +
			"atom.relaxed.gpu.global.exch.b32 %r2, [%rd4], 3; st.global.u32 [%rd4], %r2;", func(i uint32) uint32 {
			if i == 9 {
				return 20
			}
			return min(i^1, 20)
		}},
		{"{ .reg .b32 %t; mov.u32 %t, 4; { .reg .b64 %t; mov.u64 %t, 5; } add.u32 %t, %t, 1;" +
			"st.global.u32 [%rd4], %t; }",
			func(i uint32) uint32 { return 5 }},
	} {
		threads := uint32(64)
		m, _, err := runSnippet(c.body, launch{1, threads})
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		for i := range threads {
			got := uint32(peek(m.allocations[0].Bytes[4*i:], 4))
			if want := c.want(i); got != want {
				t.Errorf("%s: thread %d gives %#x, want %#x", c.body, i, got, want)
				break
			}
		}
	}
}

func b2u(b bool) uint32 { return uint32(bits.OnesCount64(truth(b))) }

// TestBarriersDeleted deletes each barrier of kernels whose threads work together: that must be found, in each seed.
func TestBarriersDeleted(t *testing.T) {
	content, err := os.ReadFile("testdata/kernels.ptx")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(content), "\n")
	kernel := ""
	tried := map[string]int{}
	for i, line := range lines {
		if _, name, ok := strings.Cut(line, ".visible .entry "); ok {
			kernel = strings.TrimSuffix(strings.TrimSpace(name), "(")
		}
		if !strings.Contains(line, "bar.sync") {
			continue
		}
		tried[kernel]++
		without, err := Parse(strings.Join(lines[:i], "") + "\n" + strings.Join(lines[i+1:], ""))
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(5) {
			m := &memory{}
			l := Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{256, 1, 1}, Seed: seed, Memory: m}
			switch kernel {
			case "blockSum":
				l.Args = []uint64{m.empty(4), m.add(bytesOf(randomFloats(1, 2000))), 2000}
			case "transposed":
				l.Block = [3]uint32{32, 8, 1}
				l.Args = []uint64{m.empty(4096), m.add(bytesOf(randomFloats(1, 1024))), 32}
			case "product":
				l.Args = []uint64{m.empty(4 * 64 * 64), m.add(bytesOf(randomFloats(1, 64*64))),
					m.add(bytesOf(randomFloats(2, 64*64))), 64}
			default:
				t.Fatalf("%s is new", kernel)
			}
			_, err := without.Kernel(kernel).Run(l)
			fault, ok := errors.AsType[*Fault](err)
			if !ok || fault.Kind != Race && fault.Kind != Unwritten {
				t.Errorf("%s without the barrier of line %d, seed %d: %v", kernel, i+1, seed, err)
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"blockSum": 2, "transposed": 1, "product": 2}, tried); diff != "" {
		t.Errorf("barriers (-want +got):\n%s", diff)
	}
}

// TestAgain runs a kernel several times at once: each gives the same, and a fault is the same fault.
func TestAgain(t *testing.T) {
	module := kernels(t)
	x := randomFloats(1, 64*64)
	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			var first []byte
			var print Footprint
			for i := range 3 {
				m := &memory{}
				args := []uint64{m.empty(4 * 64 * 64), m.add(bytesOf(x)), m.add(bytesOf(x)), 64}
				f, err := module.Kernel("product").Run(Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{256, 1, 1},
					Args: args,
					Seed: uint64(i), Memory: m})
				if err != nil {
					t.Error(err)
				}
				if i == 0 {
					first, print = m.bytes(args[0]), f
				}
				if diff := cmp.Diff(print, f); diff != "" || !bytes.Equal(first, m.bytes(args[0])) {
					t.Errorf("seed %d gives something else:\n%s", i, diff)
				}
			}
		})
	}
	runs.Wait()
	body := "st.global.u32 [%rd0], 1; bar.sync 0; ld.global.u32 %r2, [%rd0];"
	_, _, first := runSnippet(body, launch{4, 64})
	for range 3 {
		if _, _, again := runSnippet(body, launch{4, 64}); first == nil || again.Error() != first.Error() {
			t.Errorf("got %v and then %v", first, again)
		}
	}
}

package ptx

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// snippet is a module with one kernel, main, of the parameters p0 to p3, which it has in %rd0 to %rd3; %r0 is the
// number of the thread, %r1 that of the block, and %rd4 = p0 + 4*%r0.
func snippet(body string) string {
	return `.version 6.0
.target sm_60
.address_size 64
.shared .align 16 .b8 buffer[1024];
.shared .align 4 .b8 other[64];
.global .align 4 .b8 table[8] = {0, 0, 128, 63, 0, 0, 0, 64};
.visible .entry main(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)
{
	.local .align 8 .b8 depot[16];
	.reg .pred %p<20>; .reg .b16 %rs<20>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<40>; .reg .f64 %fd<40>;
	ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1]; ld.param.u64 %rd2, [p2]; ld.param.u64 %rd3, [p3];
	mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;
	mul.wide.u32 %rd5, %r0, 4; add.s64 %rd4, %rd0, %rd5;
	mov.u64 %rd6, buffer; add.s64 %rd7, %rd6, %rd5;
` + body + `
	ret;
}`
}

// launch is how a snippet is launched: p0 is 64 words 0, 1, 2 ..., p1 is 64 words that nothing has written, p2 and p3
// are 5 and 0.
type launch struct{ blocks, threads uint32 }

func runSnippet(body string, l launch) (*memory, Footprint, error) {
	module, err := Parse(snippet(body))
	if err != nil {
		return nil, Footprint{}, err
	}
	m := &memory{}
	words := make([]uint32, 64)
	for i := range words {
		words[i] = uint32(i)
	}
	args := []uint64{m.add(bytesOf(words)), m.empty(256), 5, 0}
	f, err := module.Kernel("main").run(Launch{Grid: [3]uint32{max(l.blocks, 1), 1, 1},
		Block: [3]uint32{max(l.threads, 1), 1, 1},
		Args:  args, Memory: m}, 100_000)
	return m, f, err
}

// twice executes an instruction at %rd8 = %rd4 + begin, and once more so many bytes further.
func twice(instruction string, begin, further int) string {
	return fmt.Sprintf(`add.s64 %%rd8, %%rd4, %d; mov.u32 %%r20, 0; AGAIN: %s add.s64 %%rd8, %%rd8, %d;
		add.u32 %%r20, %%r20, 1; setp.lt.u32 %%p9, %%r20, 2; @%%p9 bra AGAIN;`, begin, instruction, further)
}

// TestFaults has for each check a kernel that fails it, and the like that does not.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		launch
		body string
		kind Kind // 0: no fault
		says string
	}{
		{"last word", launch{1, 64}, "st.global.u32 [%rd4], 7;", 0, ""},
		{"one thread too many", launch{1, 65}, "st.global.u32 [%rd4], 7;", BadAddress,
			"thread [64 0 0] at address 0x100000100"},
		{"before the first", launch{}, "st.global.u32 [%rd0+-4], 7;", BadAddress, "nothing is allocated"},
		{"half out", launch{}, "st.global.u64 [%rd0+256], 7;", BadAddress, "0x100000100"},
		{"vector half out", launch{1, 63}, "mov.f32 %f1, 0f00000000; st.global.v2.f32 [%rd0+248], {%f1, %f1}; ret;",
			Race, ""},
		{"null", launch{}, "ld.global.u32 %r2, [%rd3];", BadAddress, "at address"},
		{"shared end", launch{1, 257}, "st.shared.u32 [%rd7], 7;", BadAddress, "0xfffe000000000400"},
		{"shared as global", launch{}, "st.global.u32 [%rd7], 7;", BadAddress, "not of the global space"},
		{"global as shared", launch{}, "st.shared.u32 [%rd0], 7;", BadAddress, "not of the shared space"},
		{"generic", launch{}, "st.u32 [%rd7], 7; ld.u32 %r2, [%rd7]; st.u32 [%rd0], %r2;", 0, ""},
		{"table", launch{}, "mov.u64 %rd8, table; ld.global.nc.f32 %f1, [%rd8+4];", 0, ""},
		{"table end", launch{}, "mov.u64 %rd8, table; ld.global.nc.f32 %f1, [%rd8+8];", BadAddress, ""},
		{"table written", launch{}, "mov.u64 %rd8, table; st.global.u32 [%rd8], 1;", BadAddress,
			"variable of the module"},
		{"local end", launch{}, "mov.u64 %rd8, depot; st.local.u32 [%rd8+16], 1;", BadAddress, "local"},
		{"local", launch{1, 40}, "mov.u64 %rd8, depot; st.local.u32 [%rd8+12], %r0; ld.u32 %r2, [%rd8+12];", 0, ""},

		{"aligned v4", launch{}, "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd0+16];", 0, ""},
		{"misaligned", launch{}, "ld.global.u32 %r2, [%rd0+2];", Misaligned, "at address 0x100000002"},
		{"misaligned v4", launch{}, "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd0+8];", Misaligned, "16 bytes"},
		{"misaligned v2", launch{}, "ld.global.v2.f32 {%f1, %f2}, [%rd0+4];", Misaligned, "8 bytes"},
		{"misaligned shared", launch{}, "st.shared.u64 [%rd6+4], 0;", Misaligned, ""},
		{"misaligned local", launch{}, "mov.u64 %rd8, depot; st.local.u64 [%rd8+4], 0;", Misaligned, ""},

		{"unwritten global", launch{}, "ld.global.u32 %r2, [%rd1];", Unwritten, "not all were written"},
		{"half unwritten", launch{}, "st.global.u16 [%rd1], %rs1;", Unwritten, "register"},
		{"half unwritten word", launch{}, "st.global.u16 [%rd1], 1; ld.global.u32 %r2, [%rd1];", Unwritten, ""},
		{"written", launch{}, "st.global.u32 [%rd1], 1; ld.global.u32 %r2, [%rd1];", 0, ""},
		{"unwritten shared", launch{}, "ld.shared.u32 %r2, [buffer+4];", Unwritten, "shared variable buffer"},
		{"shared of another block", launch{2, 1}, `setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [buffer], 1;
			@!%p1 ld.shared.u32 %r2, [buffer];`, Unwritten, "[1 0 0]"},
		{"unwritten local", launch{}, "mov.u64 %rd8, depot; ld.local.u32 %r2, [%rd8];", Unwritten, "local"},
		{"unwritten register", launch{}, "add.s32 %r2, %r3, 1;", Unwritten, `"add.s32 %r2, %r3, 1"`},
		{"register in some lanes", launch{1, 32}, "setp.lt.u32 %p1, %r0, 9; @%p1 mov.u32 %r2, 1; add.s32 %r3, %r2, 1;",
			Unwritten, "thread [9 0 0]"},
		{"unwritten address", launch{}, "ld.global.u32 %r2, [%rd30];", Unwritten, ""},
		{"unwritten vector", launch{}, "mov.f32 %f1, 0f00000000; st.global.v2.f32 [%rd0], {%f1, %f2};", Unwritten, ""},
		{"unwritten guard", launch{}, "@%p1 mov.u32 %r2, 1;", Unwritten, ""},
		{"unwritten predicate", launch{}, "selp.u32 %r2, 1, 2, %p3;", Unwritten, ""},
		{"unwritten carry", launch{}, "addc.s32 %r2, %r0, 1;", Unwritten, "carry"},
		{"unwritten part", launch{}, "mov.b64 %rd8, {%r0, %r9};", Unwritten, ""},
		{"unwritten bfi", launch{}, "bfi.b32 %r2, %r0, %r0, 1, %r9;", Unwritten, ""},

		{"shared race", launch{1, 64}, "xor.b32 %r2, %r0, 32; mad.wide.u32 %rd8, %r2, 4, %rd6;" +
			"st.shared.u32 [%rd7], 1; bar.sync 0; st.shared.u32 [%rd7], 2; ld.shared.u32 %r3, [%rd8];", Race, ""},
		{"race in a warp", launch{1, 2}, `setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [buffer], 1;
			@!%p1 st.shared.u32 [buffer], 2;`, Race, "thread [0 0 0], without a barrier"},
		{"ordered by the warp", launch{1, 2}, `setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [buffer], 1; bar.warp.sync 3;
			@!%p1 ld.shared.u32 %r2, [buffer];`, 0, ""},
		{"another warp is not ordered", launch{1, 64}, `setp.eq.u32 %p1, %r0, 0; setp.eq.u32 %p2, %r0, 32;
			@%p1 st.shared.u32 [buffer], 1; bar.warp.sync -1; @%p2 st.shared.u32 [buffer], 1;`, Race, ""},
		{"part of a warp is not ordered", launch{1, 2}, `setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [buffer], 1;
			selp.b32 %r3, 1, 2, %p1; bar.warp.sync %r3; @!%p1 st.shared.u32 [buffer], 2;`, Race, ""},
		{"one instruction", launch{1, 2}, "st.global.u32 [%rd0], %r0;", Race, "writes what is used"},
		{"ordered by a barrier", launch{1, 64}, `setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [buffer], 1; bar.sync 0;
			ld.shared.u32 %r2, [buffer];`, 0, ""},
		{"write after read", launch{1, 64}, `st.shared.u32 [%rd7], 1; bar.sync 0; ld.shared.u32 %r2, [buffer];
			setp.eq.u32 %p1, %r0, 33; @%p1 st.shared.u32 [buffer], 2;`, Race, "and so did thread"},
		{"write after read of a warp", launch{1, 32}, `st.shared.u32 [%rd7], 1; bar.sync 0; ld.shared.u32 %r2, [buffer];
			setp.eq.u32 %p1, %r0, 3; @%p1 st.shared.u32 [buffer], 2;`, Race, "threads of warp 0"},
		{"own write after read", launch{1, 64}, "st.shared.u32 [%rd7], 1; ld.shared.u32 %r2, [%rd7];" +
			"st.shared.u32 [%rd7], 2;",
			0, ""},
		{"global race", launch{1, 64}, `ld.global.u32 %r2, [%rd0]; setp.eq.u32 %p1, %r0, 40;
			@%p1 st.global.u32 [%rd0], 2;`,
			Race, ""},
		{"bytes of a word", launch{1, 4}, "cvt.u64.u32 %rd8, %r0; add.s64 %rd8, %rd8, %rd0;" +
			"st.global.u8 [%rd8], 1;", 0, ""},
		{"byte of a word", launch{1, 2}, "setp.eq.u32 %p1, %r0, 0; @%p1 st.global.u32 [%rd0], 1;" +
			"@!%p1 st.global.u8 [%rd0+3], 1;",
			Race, ""},
		{"byte, then word", launch{1, 2}, "setp.eq.u32 %p1, %r0, 0; @%p1 st.global.u8 [%rd0+3], 1;" +
			"@!%p1 st.global.u32 [%rd0], 1;",
			Race, ""},

		{"blocks write", launch{3, 1}, "st.global.u32 [%rd0], 1;", Race, "the order of blocks is not known"},
		{"blocks read", launch{3, 1}, "ld.global.u32 %r2, [%rd0];", 0, ""},
		{"block reads another's", launch{2, 1}, `setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%rd0], 1;
			@!%p1 ld.global.u32 %r2, [%rd0];`, Race, "block ["},
		{"read here and elsewhere, then written", launch{4, 1}, `ld.global.u32 %r2, [%rd0]; setp.eq.u32 %p1, %r1, 2;
			@%p1 st.global.u32 [%rd0], 1;`, Race, "block"},
		{"nc of what is written", launch{}, "st.global.u32 [%rd0], 1; ld.global.nc.u32 %r2, [%rd0];", Race,
			"ld.global.nc"},

		{"atomics", launch{3, 64}, "atom.global.add.u32 %r2, [%rd0], 1;", 0, ""},
		{"atomic and read", launch{1, 64}, "atom.global.add.u32 %r2, [%rd0], 1; ld.global.u32 %r2, [%rd0];", Race, ""},
		{"read and atomic", launch{1, 64}, "ld.global.u32 %r2, [%rd0]; atom.global.add.u32 %r2, [%rd0], 1;", Race, ""},
		{"atomic and read of blocks", launch{2, 1}, `setp.eq.u32 %p1, %r1, 0; @%p1 red.global.add.u32 [%rd0], 1;
			@!%p1 ld.global.u32 %r2, [%rd0];`, Race, ""},
		{"atomics of blocks, then a write", launch{2, 1}, "red.global.add.u32 [%rd0], 1; st.global.u32 [%rd0], 1;",
			Race, ""},

		{"barrier in a branch", launch{1, 32}, "setp.lt.u32 %p1, %r0, 9; @%p1 bra L; bar.sync 0; L: ret;",
			Divergent, ""},
		{"barrier of some", launch{1, 32}, "setp.lt.u32 %p1, %r0, 9; @%p1 bar.sync 0;", Divergent, ""},
		{"barrier after the end of some", launch{1, 32}, "setp.lt.u32 %p1, %r0, 9; @%p1 ret; bar.sync 0;",
			Divergent, "ended"},
		{"barrier without a warp", launch{1, 64}, "setp.lt.u32 %p1, %r0, 32; @%p1 ret; bar.sync 0;", Divergent,
			"ended"},
		{"different barriers", launch{1, 64}, `setp.lt.u32 %p1, %r0, 32; @%p1 bra L; bar.sync 0; bra M;
			L: bar.sync 0; M: ret;`,
			Divergent, "line"},
		{"different ids", launch{1, 64}, "shr.u32 %r2, %r0, 5; bar.sync %r2;", Divergent, "barrier 1"},
		{"id", launch{1, 64}, "bar.sync 15;", 0, ""},
		{"bad id", launch{1, 64}, "bar.sync 16;", Divergent, "0 to 15"},
		{"count", launch{1, 50}, "bar.sync 1, 64;", 0, ""},
		{"bad count", launch{1, 64}, "bar.sync 1, 32;", Divergent, "all 64"},
		{"shuffle", launch{1, 32}, "shfl.sync.bfly.b32 %r2, %r0, 16, 31, -1;", 0, ""},
		{"shuffle in a branch", launch{1, 32}, "setp.lt.u32 %p1, %r0, 9; @%p1 bra L;" +
			"shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1;" +
			"L: mov.u32 %r3, 1; bar.sync 0;", Divergent, "waits for thread"},
		{"shuffle of half", launch{1, 32}, "setp.lt.u32 %p1, %r0, 16;" +
			"@%p1 shfl.sync.bfly.b32 %r2, %r0, 1, 31, 65535;", 0, ""},
		{"shuffle by one not named", launch{1, 32}, "shfl.sync.bfly.b32 %r2, %r0, 1, 31, 65535;", Divergent,
			"not among"},
		{"shuffle from the absent", launch{1, 20}, "shfl.sync.down.b32 %r2, %r0, 4, 31, -1;", Divergent,
			"from thread 20"},
		{"shuffle inside", launch{1, 20}, "shfl.sync.up.b32 %r2, %r0, 4, 0, -1;", 0, ""},

		// whole warps at what follows one another, where an instruction has been before
		{"warps of blocks write", launch{3, 32}, "st.global.u32 [%rd4], 1;", Race, "the order of blocks is not known"},
		{"warps of blocks write own", launch{2, 32}, "mad.wide.u32 %rd8, %r1, 128, %rd4; st.global.u32 [%rd8], 1;",
			0, ""},
		{"warp reads on", launch{1, 32}, twice("ld.global.u32 %r2, [%rd8];", 0, 128), 0, ""},
		{"warp reads beyond", launch{1, 32}, twice("ld.global.u32 %r2, [%rd8];", 0, 132), BadAddress, "31"},
		{"warp writes beyond", launch{1, 32}, twice("st.global.u32 [%rd8], 2;", 0, 132), BadAddress, "[31 0 0]"},
		{"warp reads askew", launch{1, 32}, twice("ld.global.u32 %r2, [%rd8];", 0, 126), Misaligned, ""},
		{"warp reads unwritten", launch{1, 32}, "add.s64 %rd4, %rd1, %rd5; st.global.u32 [%rd4], 1;" +
			"bar.warp.sync -1;" + twice("ld.global.u32 %r2, [%rd8];", 0, 64), Unwritten, "thread [16 0 0]"},
		{"warp reads another block's", launch{2, 32}, "setp.eq.u32 %p2, %r1, 0; @%p2 st.global.u32 [%rd4], 1;" +
			twice("ld.global.u32 %r2, [%rd8];", 128, -128), Race, "block"},
		{"warp reads nc what is written", launch{1, 32}, "st.global.u32 [%rd4], 1;" +
			twice("ld.global.nc.u32 %r2, [%rd8];", 128, -128), Race, "ld.global.nc"},
		{"warp reads its neighbour's", launch{1, 32}, "st.global.u32 [%rd4], 1;" +
			twice("ld.global.u32 %r2, [%rd8];", 128, -124), Race, "without a barrier"},
		{"warp writes what its neighbour reads", launch{1, 32}, "ld.global.u32 %r2, [%rd4];" +
			twice("st.global.u32 [%rd8], 2;", 128, -124), Race, "without a barrier"},

		// whichever comes first
		{"register of block 0", launch{2, 1}, "setp.eq.u32 %p1, %r1, 0; @%p1 mov.u32 %r2, 1; add.u32 %r3, %r2, 1;",
			Unwritten, ""},
		{"predicate of block 0", launch{2, 1}, "setp.eq.u32 %p1, %r1, 0; @%p1 setp.eq.u32 %p2, 1, 1; @%p2 ret;",
			Unwritten, ""},
		{"shared memory of block 0", launch{2, 1}, "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [buffer], 1;" +
			"ld.shared.u32 %r2, [buffer];", Unwritten, ""},
		{"local memory of block 0", launch{2, 1}, "mov.u64 %rd8, depot; setp.eq.u32 %p1, %r1, 0;" +
			"@%p1 st.local.u32 [%rd8], 1; ld.local.u32 %r2, [%rd8];", Unwritten, ""},
		{"register of block 1", launch{2, 1}, "setp.eq.u32 %p1, %r1, 1; @%p1 mov.u32 %r2, 1; add.u32 %r3, %r2, 1;",
			Unwritten, ""},
		{"predicate of block 1", launch{2, 1}, "setp.eq.u32 %p1, %r1, 1; @%p1 setp.eq.u32 %p2, 1, 1; @%p2 ret;",
			Unwritten, ""},
		{"shared memory of block 1", launch{2, 1}, "setp.eq.u32 %p1, %r1, 1; @%p1 st.shared.u32 [buffer], 1;" +
			"ld.shared.u32 %r2, [buffer];", Unwritten, ""},
		{"local memory of block 1", launch{2, 1}, "mov.u64 %rd8, depot; setp.eq.u32 %p1, %r1, 1;" +
			"@%p1 st.local.u32 [%rd8], 1; ld.local.u32 %r2, [%rd8];", Unwritten, ""},
		{"read by warps, written by 0", launch{1, 64}, "ld.global.u32 %r2, [%rd0]; setp.eq.u32 %p1, %r0, 0;" +
			"@%p1 st.global.u32 [%rd0], 1;", Race, ""},
		{"read by warps, written by 32", launch{1, 64}, "ld.global.u32 %r2, [%rd0]; setp.eq.u32 %p1, %r0, 32;" +
			"@%p1 st.global.u32 [%rd0], 1;", Race, ""},
		{"read by a warp, written by 0", launch{1, 32}, "ld.global.u32 %r2, [%rd0]; setp.eq.u32 %p1, %r0, 0;" +
			"@%p1 st.global.u32 [%rd0], 1;", Race, ""},

		{"endless", launch{}, "L: bra L;", Endless, "does not end"},
		{"trap", launch{}, "trap;", Trap, ""},
		{"division by zero", launch{1, 3}, "add.s32 %r2, %r0, -2; div.s32 %r3, 1, %r2;", Trap, "thread [2 0 0]"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			_, _, err := runSnippet(c.body, c.launch)
			if c.kind == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			fault, ok := errors.AsType[*Fault](err)
			if !ok || fault.Kind != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want a fault of kind %d that says %q", err, c.kind, c.says)
			}
			if fault.Kernel != "main" || fault.Line == 0 || fault.Text == "" {
				t.Errorf("the fault names no place: %+v", fault)
			}
		})
	}
}

package ptx

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestRefused has texts that are no PTX, that compile to code whose results depend on the chip, or that are not
// supported. Each is an error that names the line.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ line, says string }{
		{"frob.u32 %r2, %r0;", "unknown instruction frob.u32"},
		{"add.u33 %r2, %r0, 1;", "unknown form add.u33"},
		{"add.b32 %r2, %r0, 1;", "unknown form"},
		{"add.s8 %r2, %r0, 1;", "unknown form"},
		{"add.sat.s32 %r2, %r0, 1;", "unknown form"},
		{"add.f32 %f1, %f0, %f0;", "unknown form"}, // may be fused with a product
		{"add.rn.ftz.f32 %f1, %f0, %f0;", "unknown form"},
		{"add.rz.f32 %f1, %f0, %f0;", "unknown form"},
		{"mul.f32 %f1, %f0, %f0;", "unknown form"},
		{"mad.rn.f32 %f1, %f0, %f0, %f0;", "unknown form"},
		{"div.approx.f32 %f1, %f0, %f0;", "unknown form"},
		{"div.full.f32 %f1, %f0, %f0;", "unknown form"},
		{"sqrt.approx.f32 %f1, %f0;", "unknown form"},
		{"ex2.approx.f32 %f1, %f0;", "unknown instruction"},
		{"fma.rn.f32 %f1, %f0, %f0;", "operands"},
		{"fma.f32 %f1, %f0, %f0, %f0;", "unknown form"},
		{"mul.s32 %r2, %r0, %r0;", "unknown form"},
		{"mul.wide.u64 %rd8, %rd0, %rd0;", "unknown form"},
		{"and.s32 %r2, %r0, %r0;", "unknown form"},
		{"shl.u32 %r2, %r0, %r0;", "unknown form"},
		{"shl.b32 %r2, %r0, %rd0;", "%rd0 is .b64, not .u32"},
		{"neg.u32 %r2, %r0;", "unknown form"},
		{"popc.u32 %r2, %r0;", "unknown form"},
		{"popc.b64 %rd8, %rd0;", "%rd8 is .b64"},
		{"setp.lt.b32 %p1, %r0, 1;", "unknown form"},
		{"setp.ltu.s32 %p1, %r0, 1;", "unknown form"},
		{"setp.lo.s32 %p1, %r0, 1;", "unknown form"},
		{"setp.nan.s32 %p1, %r0, 1;", "unknown form"},
		{"setp.lt.ftz.f32 %p1, %f0, %f0;", "unknown form"},
		{"setp.lt.u32 %r2, %r0, 1;", "%r2 is no predicate"},
		{"selp.u32 %r2, 1, 2, %r3;", "no predicate"},
		{"cvt.f32.f64 %f1, %fd0;", "unknown form"}, // needs a rounding
		{"cvt.rn.f64.f32 %fd1, %f0;", "unknown form"},
		{"cvt.rn.u32.f32 %r2, %f0;", "unknown form"},
		{"cvt.rni.f32.u32 %f1, %r2;", "unknown form"},
		{"cvt.u32.f32 %r2, %f0;", "unknown form"},
		{"cvt.rzi.ftz.u32.f32 %r2, %f0;", "unknown form"},
		{"cvt.u64.u32 %r2, %r0;", "%r2 is .b32, not .u64"},
		{"mov.u32 %r2, %f0;", "%f0 is .f32, not .u32"},
		{"mov.u32 %r2, %nothing;", "no register"},
		{"mov.u32 %r2, %r40;", "no register"},
		{"mov.u32 %r2, %clock;", "no register"},
		{"mov.u32 %r2, buffer;", "64 bits"},
		{"mov.u64 %rd8, p0;", "address of a parameter"},
		{"mov.b64 %rd8, {%r0, %r1, %r2, %r3};", "%r0 is .b32"},
		{"mov.b32 {%r2, %r3}, %r0;", "%r2 is .b32"},
		{"add.u32 %r2, %r0, 4294967296;", "does not fit .u32"},
		{"add.u32 %r2, %r0, 1.5;", "no integer"},
		{"add.u32 %r2, %r0, 0f3F800000;", "another kind"},
		{"add.rn.f32 %f1, %f0, 1;", "another kind"},
		{"ld.global.u32 %r2, %rd0;", "want an address"},
		{"ld.global.u32 %r2, [%r0];", "%r0 is .b32, not .b64"},
		{"ld.global.v3.u32 %r2, [%rd0];", "unknown form"},
		{"ld.global.v4.f64 {%fd0, %fd1, %fd2, %fd3}, [%rd0];", "unknown form"},
		{"ld.global.v2.f32 %f1, [%rd0];", "want 2 registers"},
		{"ld.global.v2.f32 {%f1, %f2, %f3}, [%rd0];", "want 2 registers"},
		{"ld.shared.nc.f32 %f1, [%rd0];", "unknown form"},
		{"ld.acquire.gpu.global.u32 %r2, [%rd0];", "unknown form"},
		{"ld.relaxed.global.u32 %r2, [%rd0];", "unknown form"},
		{"ld.global.f32 %fd1, [%rd0];", "%fd1 is .f64"},
		{"ld.global.u32 %rs1, [%rd0];", "%rs1 is .b16"},
		{"ld.shared.u32 %r2, [other+64];", "64 bytes and no"},
		{"ld.shared.u32 %r2, [other+2];", "no 4 aligned"},
		{"ld.global.u32 %r2, [other];", "in the shared space"},
		{"ld.param.u64 %rd8, [p4];", "no parameter"},
		{"st.param.u64 [p0], %rd8;", "cannot be written"},
		{"st.global.nc.u32 [%rd0], 1;", "unknown form"},
		{"st.global.wt.nc.u32 [%rd0], 1;", "unknown form"},
		{"atom.global.add.f32 %f1, [%rd0], %f0;", "unknown form"}, // depends on the order of threads
		{"atom.global.add.s64 %rd8, [%rd0], 1;", "unknown form"},
		{"red.global.cas.b32 [%rd0], 1, 2;", "unknown form"},
		{"atom.local.add.u32 %r2, [%rd0], 1;", "unknown form"},
		{"shfl.bfly.b32 %r2, %r0, 1, 31;", "unknown form"},
		{"shfl.sync.bfly.b64 %rd8, %rd0, 1, 31, -1;", "unknown form"},
		{"vote.ballot.b32 %r2, %p1;", "unknown form"},
		{"bar.arrive 0, 32;", "unknown form"},
		{"bar.red.and.pred %p1, 0, %p2;", "unknown form"},
		{"membar.block;", "unknown form"},
		{"bra nowhere;", "no label nowhere"},
		{"bra.conv L;", "unknown form"},
		{"brx.idx %r0, L;", "unknown instruction"},
		{"call f, (%r0);", "no function"},
		{"call main;", "no function"},
		{"ret 1;", "unknown form"},
		{".align 4;", "unknown directive"},
		{".reg .b8 %b;", "no type of a register"},
		{".reg .u32 %r<5>;", "declared twice"},
		{".shared .b8 large[50000];", "space takes 1 to 49152"},
		{".local .align 3 .b8 large[5];", "power of two"},
		{"@%r0 bra L;", "no predicate"},
		{"L: L: ret;", "stands twice"},
		{"{", "no end"},
		{"add.u32 %r2, %r0", "want \";\""},
		{"\"abc", "no end"},
		{"/* abc", "no end"},
		{"?", "unexpected character"},
	} {
		_, err := Parse(snippet("\n" + c.line))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want an error that says %q", c.line, err, c.says)
			continue
		}
		line := 0
		if fmt.Sscanf(err.Error(), "ptx: line %d", &line); line == 0 {
			t.Errorf("%s: %v names no line", c.line, err)
		}
	}
}

// TestModules has texts of which more than a line is wrong.
func TestModules(t *testing.T) {
	const head = ".version 6.0\n.target sm_60\n.address_size 64\n"
	for _, c := range []struct{ text, says string }{
		{"", "no .version"},
		{head + ".visible .entry k(.param .u64 p) { ret; } .entry k() { ret; }", "defined twice"},
		{head + ".entry k(.param .u64 p, .param .u64 p) { ret; }", "declared twice"},
		{head + ".entry k(.param .align 8 .b8 p[16]) { ret; }", "16 bytes"},
		{head + ".func f() { call f; ret; } .entry k() { call f; ret; }", "recursive"},
		{head + ".func f(.param .b32 x) { ret; } .entry k() { .param .b64 y; call f, (y); ret; }", "does not fit"},
		{head + ".func f(.param .b32 x) { ret; } .entry k() { call f; ret; }", "1 parameters"},
		{head + ".func (.param .b32 r) f(); .entry k() { .param .b32 x; call (x), f; ret; }", "no function"},
		{head + ".global .b32 x[2] = {1, 2, 3};", "more values"},
		{head + ".global .b32 x[20000000];", "elements"},
		{".version 6.0\n.target sm_60\n.address_size 32\n", "not 64"},
		{head + ".shared .b8 a[30000]; .shared .b8 b[30000];" +
			".entry k() { .reg .b64 %a; mov.u64 %a, a; mov.u64 %a, b; ret; }",
			"60000 bytes of shared memory, at most 49152"},
		{head + ".entry k() { .local .b8 a[60000]; .local .b8 b[60000];" +
			".reg .b64 %a; mov.u64 %a, a; mov.u64 %a, b; ret; }",
			"of local memory, at most 65536"},
		{head + ".entry k() .maxclusterrank 3 { ret; }", "unknown directive"},
	} {
		if _, err := Parse(c.text); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want an error that says %q", c.text, err, c.says)
		}
	}
}

// TestLaunches has launches that a driver refuses.
func TestLaunches(t *testing.T) {
	module, err := Parse(".version 6.0\n.target sm_60\n.entry k(.param .u32 p) .maxntid 64 { ret; }\n" +
		".entry fixed() .reqntid 32 { ret; }")
	if err != nil {
		t.Fatal(err)
	}
	one := [3]uint32{1, 1, 1}
	for _, c := range []struct {
		kernel string
		Launch
		says string
	}{
		{"k", Launch{Grid: one, Block: one, Args: []uint64{7}}, ""},
		{"k", Launch{Grid: one, Block: one, Args: []uint64{^uint64(0)}}, ""}, // -1
		{"k", Launch{Grid: one, Block: one}, "1 parameters, got 0"},
		{"k", Launch{Grid: one, Block: one, Args: []uint64{1 << 32}}, "4 bytes"},
		{"k", Launch{Block: one, Args: []uint64{1}}, "empty"},
		{"k", Launch{Grid: one, Block: [3]uint32{32, 3, 1}, Args: []uint64{1}}, "96 threads, at most 64"},
		{"k", Launch{Grid: [3]uint32{1, 65536, 1}, Block: one, Args: []uint64{1}}, "larger than any GPU"},
		{"k", Launch{Grid: [3]uint32{1 << 25, 1, 1}, Block: one, Args: []uint64{1}}, "too many to execute"},
		{"fixed", Launch{Grid: one, Block: one}, "requires blocks of [32 1 1]"},
		{"fixed", Launch{Grid: one, Block: [3]uint32{32, 1, 1}}, ""},
	} {
		_, err := module.Kernel(c.kernel).Run(c.Launch)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: got %v, want %q", c.Launch, err, c.says)
		}
	}
	if module.Kernel("nothing") != nil {
		t.Error("a kernel that is not there")
	}
}

// FuzzParse looks for texts that panic or that take much memory.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/kernels.ptx")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	for _, body := range []string{
		"", "mov.b64 {%r2, _}, %rd0;", "setp.lt.and.u32 %p1|%p2, %r0, 3, !%p3;", "bar.sync 0, 32; trap;",
		"atom.global.cas.b32 %r2, [%rd0+4], 1, 2;", "L: @!%p1 bra L; .pragma \"nounroll\"; .loc 1 2 3\n",
		"shfl.sync.idx.b32 %r2|%p1, %r0, 1, 31, -1;", "ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [buffer+16];",
		"{ .param .b32 x; st.param.f32 [x+0], 0f3F800000; }", "cvt.rn.sat.f16.f32 %rs1, %f1;",
	} {
		f.Add(snippet(body))
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err == nil && m == nil {
			t.Fatal("neither a module nor an error")
		}
	})
}

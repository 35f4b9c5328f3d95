package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// tileRows is the most rows that a tile of package gemm has.
const tileRows = 6

// float is a type of floats with the instructions for it.
type float struct {
	name                 string
	broadcast, fuse, add func(operands ...Op)
}

var floats = map[int]float{
	32: {"float32", VBROADCASTSS, VFMADD231PS, VADDPS},
	64: {"float64", VBROADCASTSD, VFMADD231PD, VADDPD},
}

// tiles writes the assembly of package gemm: a function for every number of rows that a tile may have.
func tiles() {
	for _, size := range []int{32, 64} {
		for rows := 1; rows <= tileRows; rows++ {
			tile(fmt.Sprintf("tile%dx%d", size, rows), floats[size], rows)
		}
	}
	lay()
	turn()
}

// tile writes the products of rows of A and two registers of columns of B, whose sums stay in registers, tile after
// tile.
func tile(name string, f float, rows int) {
	signature := strings.ReplaceAll("func(a, b, c *float, tiles, k, row, step, next, line, add int)", "float", f.name)
	text(name+"AVX2", signature,
		fmt.Sprintf("computes tiles of %d rows of c from a and b.", rows))
	a, c, tiles := param("a"), param("c"), param("tiles")
	row, step, next, line := param("row"), param("step"), param("next"), param("line")
	near, far, b, k, to := GP64(), GP64(), GP64(), GP64(), GP64()
	sums := ymms(2 * rows)

	Label("tile")
	MOVQ(a, near)
	LEAQ(Mem{Base: a, Index: row, Scale: 2}, far) // the fourth row
	ADDQ(row, far)
	Load(Param("b"), b)
	Load(Param("k"), k)
	for _, y := range sums {
		VXORPS(y, y, y)
	}
	Label("product")
	left, right := YMM(), YMM()
	VMOVUPS(Mem{Base: b}, left)
	VMOVUPS(Mem{Base: b, Disp: 32}, right)
	for i := range rows {
		at, v := Mem{Base: []Register{near, far}[i/3]}, YMM()
		if i%3 > 0 {
			at.Index, at.Scale = row, uint8(i%3)
		}
		f.broadcast(at, v)
		f.fuse(left, v, sums[2*i])
		f.fuse(right, v, sums[2*i+1])
	}
	ADDQ(step, near)
	ADDQ(step, far)
	ADDQ(next, b)
	SUBQ(Imm(1), k)
	JNZ(LabelRef("product"))

	MOVQ(c, to)
	add := param("add")
	TESTQ(add, add)
	JZ(LabelRef("store"))
	for i := range rows {
		f.add(Mem{Base: to}, sums[2*i], sums[2*i])
		f.add(Mem{Base: to, Disp: 32}, sums[2*i+1], sums[2*i+1])
		ADDQ(line, to)
	}
	Label("store")
	for i := range rows {
		VMOVUPS(sums[2*i], Mem{Base: c})
		VMOVUPS(sums[2*i+1], Mem{Base: c, Disp: 32})
		ADDQ(line, c)
		ADDQ(row, a)
	}
	SUBQ(Imm(1), tiles)
	JNZ(LabelRef("tile"))
	end()
}

// turn writes the transposition of the rows that become a panel.
func turn() {
	text("turnAVX2", "func(to, from *float32, n, stride int)",
		"writes n columns, a multiple of 4, of 16 rows that lie stride bytes apart, one after the other.")
	to, from, n, stride := param("to"), param("from"), param("n"), param("stride")
	Label("next")
	at := GP64()
	MOVQ(from, at)
	for half := range 2 {
		rows := ymms(4) // each with the row four below it
		for _, y := range rows {
			VMOVUPS(Mem{Base: at}, y.AsX())
			VINSERTF128(Imm(1), Mem{Base: at, Index: stride, Scale: 4}, y, y)
			ADDQ(stride, at)
		}
		for range 4 {
			ADDQ(stride, at)
		}
		low, high := ymms(2), ymms(2)
		for pair := range 2 {
			VUNPCKLPS(rows[2*pair+1], rows[2*pair], low[pair])
			VUNPCKHPS(rows[2*pair+1], rows[2*pair], high[pair])
		}
		for column := range 4 {
			from, y := [][]VecVirtual{low, high}[column/2], YMM()
			VSHUFPS(Imm([]uint64{0x44, 0xee}[column%2]), from[1], from[0], y)
			VMOVUPS(y, Mem{Base: to, Disp: 64*column + 32*half})
		}
	}
	ADDQ(Imm(16), from)
	ADDQ(U32(256), to)
	SUBQ(Imm(4), n)
	JNZ(LabelRef("next"))
	end()
}

// lay writes the copy of rows that become panels. What follows in memory at a distance is fetched a row ahead.
func lay() {
	text("layAVX2", "func(to, from *byte, panels, k, stride, size int)",
		"copies k rows, stride bytes apart, to panels of 64 bytes a row, size bytes apart.")
	to, from, panels, k := param("to"), param("from"), param("panels"), param("k")
	stride, size := param("stride"), param("size")
	Label("row")
	source, target, left := GP64(), GP64(), GP64()
	MOVQ(from, source)
	MOVQ(to, target)
	MOVQ(panels, left)
	Label("panel")
	y := ymms(2)
	PREFETCHT0(Mem{Base: source, Index: stride, Scale: 1})
	VMOVUPS(Mem{Base: source}, y[0])
	VMOVUPS(Mem{Base: source, Disp: 32}, y[1])
	VMOVUPS(y[0], Mem{Base: target})
	VMOVUPS(y[1], Mem{Base: target, Disp: 32})
	ADDQ(Imm(64), source)
	ADDQ(size, target)
	SUBQ(Imm(1), left)
	JNZ(LabelRef("panel"))
	ADDQ(stride, from)
	ADDQ(Imm(64), to)
	SUBQ(Imm(1), k)
	JNZ(LabelRef("row"))
	end()
}

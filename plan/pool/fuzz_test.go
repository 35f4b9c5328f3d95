package pool

import (
	"slices"
	"testing"
)

// fuzzed makes options and buffers of bytes: any that can be written down, those that Pack is to refuse included.
func fuzzed(data []byte) (o Options, buffers []Buffer) {
	const header, each, maxBuffers = 2, 9, 80
	if len(data) < header {
		return o, nil
	}
	names := Methods()
	o.Method = names[int(data[0])%len(names)]
	scale := int(data[1]) % 64 // of sizes and offsets that are scaled
	for data = data[header:]; len(data) >= each && len(buffers) < maxBuffers; data = data[each:] {
		kind, align := data[7], int64(1)<<(data[5]%64)
		if data[5] >= 192 {
			align = int64(data[5]%64) - 2
		}
		b := Buffer{Size: int64(data[0]), Align: align, Alias: int(kind%8) - 4, At: int64(data[8])}
		if kind&8 > 0 {
			b.Alias = 0
		}
		b.Fixed = kind&16 > 0
		if kind&32 > 0 {
			b.Size <<= scale
		}
		if kind&64 > 0 {
			b.At <<= scale
		}
		if kind&128 > 0 {
			b.Size += int64(data[6]) - 128
		}
		from := int(data[1])
		b.Spans = []Span{{from, from + int(data[2])}}
		if data[3] > 0 {
			next := from + int(data[2]) + int(data[3]) - 8
			b.Spans = append(b.Spans, Span{next, next + int(data[4])})
		}
		buffers = append(buffers, b)
	}
	return o, buffers
}

// refusable reports whether there is a reason not to pack the buffers by a method. A group that is fixed takes the
// bytes of its largest member wherever any is resident.
func refusable(buffers []Buffer, method string) bool {
	fixed := func(b Buffer) bool { return b.Fixed }
	if check(buffers).err() != nil || method == "online" && slices.ContainsFunc(buffers, fixed) {
		return true
	}
	merged, _ := mergeGroups(buffers)
	merged = slices.DeleteFunc(merged, func(b Buffer) bool { return !b.Fixed || b.Size == 0 })
	for i := range merged {
		for j := range merged[:i] {
			b, c := &merged[i], &merged[j]
			if b.At < c.At+c.Size && c.At < b.At+b.Size && shareSlot(b, c) {
				return true
			}
		}
	}
	return false
}

// Whatever the buffers are, they are refused for a reason, or the layout is right. Where there are few, what is said
// about the lowest layout is true.
func FuzzPack(f *testing.F) {
	buffer := func(size, from, length, gap, second, align, more, kind, at byte) []byte {
		return []byte{size, from, length, gap, second, align, more, kind, at}
	}
	for method := range byte(len(methods)) {
		f.Add(slices.Concat([]byte{method, 0}, buffer(4, 0, 3, 0, 0, 3, 0, 8, 0), buffer(9, 2, 5, 9, 4, 0, 0, 8, 0),
			buffer(5, 1, 9, 0, 0, 3, 0, 8, 0)))
		f.Add(slices.Concat([]byte{method, 55}, buffer(64, 0, 3, 0, 0, 0, 0, 40, 0), buffer(190, 2, 5, 0, 0, 57, 0, 40,
			0), buffer(5, 1, 9, 0, 0, 3, 0, 40, 0)))
		f.Add(slices.Concat([]byte{method, 0}, buffer(4, 0, 3, 0, 0, 0, 0, 24, 16), buffer(9, 2, 5, 0, 0, 0, 0, 5, 0),
			buffer(5, 1, 9, 0, 0, 3, 0, 5, 0)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, buffers := fuzzed(data)
		l, err := Pack(buffers, o)
		if refusable(buffers, o.Method) != (err != nil) {
			t.Fatalf("%s: error %v for %+v", o.Method, err, buffers)
		}
		if err != nil {
			return
		}
		if err := Validate(buffers, l); err != nil || l.LowerBound < Load(buffers) {
			t.Fatalf("%s: lower bound %d, the load is %d: %v", o.Method, l.LowerBound, Load(buffers), err)
		}
		var total int64
		for _, b := range buffers {
			total = max(total, b.At*int64(first(b.Fixed))) + b.Size + b.align()
			if len(buffers) > 6 || total > 500 {
				return
			}
		}
		if optimum := slowOptimum(buffers); l.Height < optimum || l.LowerBound > optimum {
			t.Fatalf("%s: height %d, lower bound %d; the optimum is %d of %+v", o.Method, l.Height, l.LowerBound,
				optimum, buffers)
		}
	})
}

package pool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestReadCSV(t *testing.T) {
	for _, c := range []struct {
		name, text string
		ids        []string
		want       []Buffer
	}{
		{"minimalloc's example", "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n", []string{"b1", "b2"},
			[]Buffer{{Size: 4, Spans: []Span{{0, 3}}}, {Size: 4, Spans: []Span{{3, 9}}}}},
		{"columns in any order, spaces, capitals, others", " Size ,ID,Upper,lower,hint,note\n 5 ,a b,-3, -7 ,-1,\"x," +
			"\"\"y\"\"\"\n", []string{"a b"},
			[]Buffer{{Size: 5, Spans: []Span{{-7, -3}}}}},
		{"mark, line ends of Windows, an empty line, no line end at the end",
			"\xef\xbb\xbfid,lower,upper,size\r\n\r\na,0,1,0\r\nb,0,1,2", []string{"a", "b"},
			[]Buffer{{Size: 0, Spans: []Span{{0, 1}}}, {Size: 2, Spans: []Span{{0, 1}}}}},
		{"no buffers", "id,lower,upper,size\n", nil, nil},
		{"alignment", "id,lower,upper,size,alignment\na,0,1,2,\nb,0,1,2,0\nc,0,1,2,1\nd,0,1,2,512\n",
			[]string{"a", "b", "c", "d"},
			[]Buffer{{Size: 2, Spans: []Span{{0, 1}}}, {Size: 2, Spans: []Span{{0, 1}}},
				{Size: 2, Spans: []Span{{0, 1}}},
				{Size: 2, Spans: []Span{{0, 1}}, Align: 512}}},
		{"offset", "id,lower,upper,size,offset\na,0,1,2,\nb,0,1,2,0\nc,0,1,2,9223372036854775805\n",
			[]string{"a", "b", "c"},
			[]Buffer{{Size: 2, Spans: []Span{{0, 1}}}, {Size: 2, Spans: []Span{{0, 1}}, Fixed: true},
				{Size: 2, Spans: []Span{{0, 1}}, Fixed: true, At: 9223372036854775805}}},
		{"alias", "id,lower,upper,size,alias\na,0,1,2,w\nb,0,1,2,\nc,0,1,2,7\nd,0,1,2, w\n",
			[]string{"a", "b", "c", "d"},
			[]Buffer{{Size: 2, Spans: []Span{{0, 1}}, Alias: 1}, {Size: 2, Spans: []Span{{0, 1}}},
				{Size: 2, Spans: []Span{{0, 1}}, Alias: 2}, {Size: 2, Spans: []Span{{0, 1}}, Alias: 1}}},
		{"gaps", "id,lower,upper,size,gaps\na,0,9,2,5-6 1-3\nb,0,9,2,0-1 7-9 2-3 3-4\nc,-9,9,2,-5--3\nd,0,9,2,\n",
			[]string{"a", "b", "c", "d"},
			[]Buffer{{Size: 2, Spans: []Span{{0, 1}, {3, 5}, {6, 9}}}, {Size: 2, Spans: []Span{{1, 2}, {4, 7}}},
				{Size: 2, Spans: []Span{{-9, -5}, {-3, 9}}}, {Size: 2, Spans: []Span{{0, 9}}}}},
		{"the old form, in which ends are last slots", "buffer_id,start,end,size,gaps\na,5,5,1,\nb,5,11,2,7-7 9-9\n",
			[]string{"a", "b"},
			[]Buffer{{Size: 1, Spans: []Span{{5, 6}}}, {Size: 2, Spans: []Span{{5, 7}, {8, 9}, {10, 12}}}}},
	} {
		ids, got, err := ReadCSV(iotest.OneByteReader(strings.NewReader(c.text)), "f.csv")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.ids, ids); diff != "" {
			t.Errorf("%s: ids (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestReadCSVErrors(t *testing.T) {
	const head = "id,lower,upper,size,alignment,offset,alias,gaps\n"
	const good = head + "a,0,9,4,,,,\n"
	long := strings.Repeat("x", 50)
	for _, c := range []struct{ text, want string }{
		{"", "f.csv is empty: its first row is to name the columns id,lower,upper,size"},
		{"\xef\xbb\xbf", "f.csv is empty: its first row is to name the columns id,lower,upper,size"},
		{"id,lower,size\n", "f.csv: row 1: no column upper: the first row is to name the columns, with commas " +
			"between: id,lower,upper,size"},
		{"\n\nid;lower;upper;size\n", "f.csv: row 3: no column id: the first row is to name the columns, with " +
			"commas between: id,lower,upper,size"},
		{"\xff\xfei\x00d\x00,\x00", "f.csv: row 1: no column id: the first row is to name the columns, with commas " +
			"between: id,lower,upper,size"},
		{"\x7fELF\x02\x01\x01\"\x00", "f.csv is not a CSV: its first row is to name the columns id,lower,upper,size," +
			" and has at character 8: bare \" in non-quoted-field"},
		{"id,lower,upper,size,Size\n", "f.csv: row 1: two columns for size: leave one out"},
		{"id,lower,start,upper,size\n", "f.csv: row 1: two columns for lower: leave one out"},
		{"id,lower,upper,size,Align\n", `f.csv: row 1: unknown column "align": write alignment, or another name if ` +
			`something else is meant`},
		{good + "b,0,9,4,,,\n", "f.csv: row 3: 7 fields, and the header has 8"},
		{good + "b,0,9,4,,,,,\n", "f.csv: row 3: 9 fields, and the header has 8"},
		{good + "\nb\n", "f.csv: row 4: 1 fields, and the header has 8"},
		{good + ",0,9,4,,,,\n", "f.csv: row 3, column id: is empty"},
		{good + "a,0,9,4,,,,\n", `f.csv: row 3, column id: "a" is the id of row 2 already`},
		{good + "\"b\nb\",0,9,4,,,,\n", `f.csv: row 3, column id: "b\nb" is not a line of text`},
		{good + "\xff" + long + ",0,9,4,,,,\n", `f.csv: row 3, column id: "\xff` + long[:39] +
			`"... is not a line of text`},
		{good + "b,x,9,4,,,,\n", `f.csv: row 3, column lower: "x" is not a whole number`},
		{good + "b,,9,4,,,,\n", `f.csv: row 3, column lower: "" is not a whole number`},
		{good + "b,0,9.0,4,,,,\n", `f.csv: row 3, column upper: "9.0" is not a whole number`},
		{good + "b,9,9,4,,,,\n", "f.csv: row 3, column upper: 9 leaves no slot to a lifetime from 9 on"},
		{good + "b,9,-9,4,,,,\n", "f.csv: row 3, column upper: -9 leaves no slot to a lifetime from 9 on"},
		{good + "b,0,9,12x,,,,\n", `f.csv: row 3, column size: "12x" is not a whole number`},
		{good + "b,0,9,-4,,,,\n", "f.csv: row 3, column size: -4 is negative"},
		{good + "b,0,9,9223372036854775808,,,,\n", `f.csv: row 3, column size: "9223372036854775808" is more than ` +
			`64 bits hold`},
		{good + "b,0,9,4,3,,,\n", "f.csv: row 3, column alignment: 3 is not a power of two"},
		{good + "b,0,9,4,-4,,,\n", "f.csv: row 3, column alignment: -4 is not a power of two"},
		{good + "b,0,9,4,-9223372036854775808,0,,\n", "f.csv: row 3, column alignment: -9223372036854775808 is not " +
			"a power of two"},
		{good + "b,0,9,4,,-1,,\n", "f.csv: row 3, column offset: -1 is negative; leave the field empty where any " +
			"offset will do"},
		{good + "b,0,9,4,8,12,,\n", "f.csv: row 3, column offset: 12 is not a multiple of the alignment 8"},
		{good + "b,0,9,4,,9223372036854775804,,\n", "f.csv: row 3, column offset: 9223372036854775804 and the size " +
			"4 together are more than 64 bits hold"},
		{good + "b,0,9,4,,8,v,\nc,0,9,4,,,v,\n", `f.csv: row 4, column offset: not as in row 3 of the same alias ` +
			`"v": buffers that share their bytes have one offset`},
		{good + "b,0,9,4,,0,v,\nc,0,9,4,,,v,\n", `f.csv: row 4, column offset: not as in row 3 of the same alias ` +
			`"v": buffers that share their bytes have one offset`},
		{good + "b,0,9,4,,8,v,\nc,0,9,4,,16,v,\n", `f.csv: row 4, column offset: not as in row 3 of the same alias ` +
			`"v": buffers that share their bytes have one offset`},
		{good + "b,0,9,4,,,,7\n", `f.csv: row 3, column gaps: "7" is no gap such as 7-9`},
		{good + "b,0,9,4,,,,-\n", `f.csv: row 3, column gaps: "-" is no gap such as 7-9`},
		{good + "b,0,9,4,,,,1-2-3\n", `f.csv: row 3, column gaps: "2-3" is not a whole number`},
		{good + "b,0,9,4,,,,A-B\n", `f.csv: row 3, column gaps: "A" is not a whole number`},
		{good + "b,0,9,4,,,,4-4\n", `f.csv: row 3, column gaps: "4-4" is empty or not within the lifetime`},
		{good + "b,2,9,4,,,,1-4\n", `f.csv: row 3, column gaps: "1-4" is empty or not within the lifetime`},
		{good + "b,2,9,4,,,,5-10\n", `f.csv: row 3, column gaps: "5-10" is empty or not within the lifetime`},
		{good + "b,2,9,4,,,,5-7 3-6\n", `f.csv: row 3, column gaps: "5-7 3-6" has slot 5 twice`},
		{good + "b,2,9,4,,,,2-5 5-9\n", `f.csv: row 3, column gaps: "2-5 5-9" leaves no slot to the lifetime`},
		{good + "b,2,9,4,,,,5-7@0:3\n", `f.csv: row 3, column gaps: "5-7@0:3" has a window of bytes, which is not ` +
			`supported: a buffer has all of its bytes or none`},
		{"id,lower,end,size\na,0,9223372036854775807,1\n", "f.csv: row 2, column upper: 9223372036854775807 is " +
			"beyond the slots that can be counted"},
		{good + "b,0,\"9,4,,,,\nc,0,9,4,,,,\n", "f.csv: row 3: extraneous or missing \" in quoted-field (line 4, " +
			"character 13)"},
		{good + "b,0,\"9\"x,4,,,,\n", "f.csv: row 3: extraneous or missing \" in quoted-field (line 3, character 7)"},
	} {
		ids, got, err := ReadCSV(strings.NewReader(c.text), "f.csv")
		if err == nil || err.Error() != c.want || ids != nil || got != nil {
			t.Errorf("%q: %v, %v, %v, want %s", c.text, ids, got, err, c.want)
		}
	}
}

// What goes wrong below is passed on, whenever it does.
func TestReadCSVFails(t *testing.T) {
	broken := errors.New("cable cut")
	text := "id,lower,upper,size\na,0,9,4\n"
	for n := range len(text) {
		_, _, err := ReadCSV(io.MultiReader(strings.NewReader(text[:n]), iotest.ErrReader(broken)), "f.csv")
		if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "f.csv: ") {
			t.Errorf("after %q: %v", text[:n], err)
		}
	}
}

func TestWriteCSV(t *testing.T) {
	buffers := []Buffer{
		{Size: 4, Spans: []Span{{0, 3}, {3, 5}}},
		{Size: 6, Spans: []Span{{0, 2}, {4, 5}, {5, 6}, {7, 9}}, Align: 8},
		{Size: 2, Spans: []Span{{-3, 1}}, Fixed: true, At: 40, Alias: 5},
	}
	ids := []string{"a", "b,c", `"d"`}
	for _, c := range []struct {
		n    int
		l    Layout
		want string
	}{
		{1, Layout{}, "id,lower,upper,size\na,0,5,4\n"},
		{1, Layout{Offsets: []int64{7}}, "id,lower,upper,size,offset\na,0,5,4,7\n"},
		{2, Layout{}, "id,lower,upper,size,alignment,gaps\na,0,5,4,1,\n\"b,c\",0,9,6,8,2-4 6-7\n"},
		{3, Layout{}, "id,lower,upper,size,alignment,offset,alias,gaps\na,0,5,4,1,,,\n\"b,c\",0,9,6,8,,,2-4 " +
			"6-7\n\"\"\"d\"\"\",-3,1,2,1,40,5,\n"},
		{3, Layout{Offsets: []int64{0, 8, 40}}, "id,lower,upper,size,alignment,offset,alias,gaps\na,0,5,4,1,0,," +
			"\n\"b,c\",0,9,6,8,8,,2-4 6-7\n\"\"\"d\"\"\",-3,1,2,1,40,5,\n"},
	} {
		var got bytes.Buffer
		if err := WriteCSV(&got, ids[:c.n], buffers[:c.n], c.l); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if err := WriteCSV(brokenWriter{}, ids, buffers, Layout{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// checkWrittenCSV writes buffers as they were read, which must be read as the same again, and with a layout, which must
// be read as buffers that are fixed where it has them.
func checkWrittenCSV(t *testing.T, ids []string, buffers []Buffer) {
	t.Helper()
	l := Layout{}
	for range 2 {
		var text bytes.Buffer
		if err := WriteCSV(&text, ids, buffers, l); err != nil {
			t.Fatal(err)
		}
		gotIDs, got, err := ReadCSV(bytes.NewReader(text.Bytes()), "f.csv")
		if diff := cmp.Diff(ids, gotIDs); diff != "" || err != nil {
			t.Fatalf("%v, ids (-want +got):\n%s\nof %s", err, diff, &text)
		}
		if diff := cmp.Diff(buffers, got); diff != "" {
			t.Fatalf("(-want +got):\n%s\nof %s", diff, &text)
		}
		buffers = append([]Buffer(nil), buffers...)
		l.Offsets = make([]int64, len(buffers))
		for i, b := range buffers {
			l.Offsets[i] = b.At // the same for all of a group
			if !b.Fixed {
				l.Offsets[i] = int64(b.Alias) << 30
			}
			buffers[i].Fixed, buffers[i].At = true, l.Offsets[i]
			if buffers[i].At%b.align() != 0 || buffers[i].At+b.Size < 0 {
				return
			}
		}
	}
}

func TestCSVRoundTrip(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 16))
		var ids []string
		var buffers []Buffer
		groups := make(map[int]int)
		for i, b := range randomBuffers(rng) {
			b.Fixed, b.At, b.Alias = false, 0, 0
			var spans []Span // as they are read: none touch
			for _, s := range b.Spans {
				if n := len(spans); n > 0 && spans[n-1].To == s.From {
					spans[n-1].To = s.To
				} else {
					spans = append(spans, s)
				}
			}
			b.Spans = spans
			if b.Align == 1 {
				b.Align = 0
			}
			if g := rng.IntN(9); g < 4 { // groups are numbered as they are met
				if _, ok := groups[g]; !ok {
					groups[g] = len(groups) + 1
				}
				b.Alias = groups[g]
				b.Fixed, b.At = g == 0, []int64{64, 0, 0, 0}[g]
			}
			ids = append(ids, fmt.Sprintf("%d%s", i, []string{"", "\"", ",", " ü"}[rng.IntN(4)]))
			buffers = append(buffers, b)
		}
		checkWrittenCSV(t, ids, buffers)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add("id,lower,upper,size,alignment,offset,alias,gaps\na,0,9,4,8,16,x,2-3 5-6\nb,-5,9,4,,,y,-3-6\n")
	f.Add("buffer,start,end,size\na,0,9,\"4\"\n")
	f.Add("id,lower,upper,size\n\"a\nb\",0,9,4\n")
	f.Fuzz(func(t *testing.T, text string) {
		ids, buffers, err := ReadCSV(strings.NewReader(text), "f.csv")
		if err != nil {
			if line := err.Error(); !strings.HasPrefix(line, "f.csv") || strings.ContainsAny(line, "\n\r") ||
				ids != nil || buffers != nil {
				t.Fatalf("error %q, with %v, %v", line, ids, buffers)
			}
			return
		}
		for i, b := range buffers {
			if b.Size < 0 || badSpans(b.Spans) != "" || b.At < 0 || b.At+b.Size < 0 || b.At%b.align() != 0 {
				t.Fatalf("buffer %d: %+v", i, b)
			}
		}
		checkWrittenCSV(t, ids, buffers)
	})
}

func BenchmarkReadCSV(b *testing.B) {
	buffers := trainingStep(60_000, 1)
	ids := make([]string, len(buffers))
	for i := range ids {
		ids[i] = fmt.Sprintf("tensor %d", i)
	}
	var text bytes.Buffer
	if err := WriteCSV(&text, ids, buffers, Layout{}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, got, err := ReadCSV(bytes.NewReader(text.Bytes()), "f.csv"); err != nil || len(got) != len(buffers) {
			b.Fatal(len(got), err)
		}
	}
}

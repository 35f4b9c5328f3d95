package weights

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"tensile/graph"
)

// The bytes were worked out by hand from the format's description.
func TestBytesOfAFile(t *testing.T) {
	got := written(t, File{
		Metadata: map[string]string{"step": "3", "job": "<a>"},
		Tensors: []Tensor{
			{"fc.w", graph.Shape{2, 1}, []float32{1, -2}},
			{"fc.b", nil, []float32{0.5}},
		},
	})
	header := `{"__metadata__":{"job":"<a>","step":"3"},` +
		`"fc.b":{"dtype":"F32","shape":[],"data_offsets":[0,4]},` +
		`"fc.w":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]}}`
	header += strings.Repeat(" ", 8-len(header)%8)
	want := append(raw(header, 0), 0, 0, 0, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0)
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if start := len(got) - 12; start%8 != 0 {
		t.Errorf("data starts at %d, want a multiple of 8", start)
	}
}

func TestOrderOfTensorsDoesNotMatter(t *testing.T) {
	tensors := []Tensor{{"b", graph.Shape{1}, []float32{1}}, {"a", graph.Shape{1}, []float32{2}},
		{"_", graph.Shape{1}, []float32{3}}}
	want := written(t, File{Tensors: tensors})
	tensors[0], tensors[2] = tensors[2], tensors[0]
	if got := written(t, File{Tensors: tensors}); !bytes.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if tensors[0].Name != "_" || tensors[2].Name != "b" {
		t.Error("writing sorted the caller's tensors")
	}
}

func TestHeaderHasALimit(t *testing.T) {
	f := File{Metadata: map[string]string{"a": "b"}} // {"__metadata__":{"a":"b"}}, padded to 32 bytes
	if _, err := header(f, 32); err != nil {
		t.Error(err)
	}
	_, err := header(f, 31)
	checkError(t, err, "the header would take 32 bytes, want at most 31: shorten")
}

func TestWriteRefuses(t *testing.T) {
	one := []float32{1}
	deep := make(graph.Shape, maxRank+1)
	for i := range deep {
		deep[i] = 1
	}
	for name, c := range map[string]struct {
		file File
		want string
	}{
		"reserved name": {File{Tensors: []Tensor{{"__metadata__", graph.Shape{1}, one}}},
			"may not be called __metadata__: rename"},
		"bad name": {File{Tensors: []Tensor{{"a\xff", graph.Shape{1}, one}}},
			`tensor "a\xff": the name is not UTF-8`},
		"same name": {File{Tensors: []Tensor{{"a", graph.Shape{1}, one}, {"a", graph.Shape{1}, one}}},
			`tensor "a" is there twice`},
		"little data": {File{Tensors: []Tensor{{"a", graph.Shape{2}, one}}},
			`tensor "a": shape [2] has 2 elements, the data 1`},
		"much data": {File{Tensors: []Tensor{{"a", graph.Shape{0}, one}}},
			`tensor "a": shape [0] has 0 elements, the data 1`},
		"negative": {File{Tensors: []Tensor{{"a", graph.Shape{-1, -1}, one}}}, "negative extent"},
		"overflow": {File{Tensors: []Tensor{{"a", graph.Shape{1 << 31, 1 << 31}, one}}},
			"more bytes than can be counted"},
		"rank":     {File{Tensors: []Tensor{{"a", deep, one}}}, "has 65 dimensions, want at most 64"},
		"bad key":  {File{Metadata: map[string]string{"\xff": ""}}, "metadata is not UTF-8"},
		"bad text": {File{Metadata: map[string]string{"a": "\xff"}}, "metadata is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "w.safetensors")
			err := Write(nil, path, c.file)
			checkError(t, err, path, c.want)
			checkFolder(t, filepath.Dir(path))
		})
	}
}

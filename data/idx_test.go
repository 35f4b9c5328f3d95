package data

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// idx makes an IDX file of unsigned bytes.
func idx(content []byte, extents ...int) []byte {
	file := []byte{0, 0, 8, byte(len(extents))}
	for _, e := range extents {
		file = binary.BigEndian.AppendUint32(file, uint32(e))
	}
	return append(file, content...)
}

func zipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadIDX(t *testing.T) {
	plain := idx([]byte{1, 2, 3, 4, 5, 6}, 1, 2, 3)
	for name, file := range map[string][]byte{"plain": plain, "gzip": zipped(t, plain)} {
		extents, content, err := readMaybeGzip(bytes.NewReader(file), 3)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]int{1, 2, 3}, extents) + cmp.Diff([]byte{1, 2, 3, 4, 5, 6}, content); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestReadIDXErrors(t *testing.T) {
	good := idx([]byte{1, 2, 3}, 3)
	content := make([]byte, 3000)
	for i := range content {
		content[i] = byte(mix(uint64(i))) // not compressible, so that half of the file is half of the content
	}
	packed := zipped(t, idx(content, 3000))
	broken := slices.Clone(packed)
	broken[len(broken)-6] ^= 1 // in the checksum
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":          {nil, "truncated: ends after 0 of 8 bytes: download it again"},
		"in the header":  {good[:7], "truncated: ends after 7 of 8 bytes: download it again"},
		"in the content": {good[:10], "truncated: ends after 10 of 11 bytes: download it again"},
		"in gzip":        {packed[:len(packed)/2], " of 3008 bytes: download it again"},
		"gzip checksum":  {broken, "damaged after 3008 of 3008 bytes (gzip: invalid checksum): download it again"},
		"gzip header":    {[]byte{0x1f, 0x8b, 9}, "damaged (unexpected EOF): download it again"},
		"too long":       {append(slices.Clone(good), 0), "goes on after the 11 bytes"},
		"images": {idx(make([]byte, 4), 1, 2, 2), "starts with 0x00000803, want 0x00000801 (unsigned bytes," +
			" 1 dimensions)"},
		"a web page":      {[]byte("<!DOCTYPE html>"), "starts with 0x3c21444f, want 0x00000801"},
		"no elements":     {idx(nil, 0), "the header claims extents [0]..., want 1 to 1073741824 bytes"},
		"claims too much": {idx(nil, 1<<32-1), "the header claims extents [4294967295]..."},
	} {
		_, _, err := readMaybeGzip(bytes.NewReader(c.file), 1)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
	overflow := idx(nil, 1<<31, 1<<31, 1<<31)
	if _, _, err := readIDX(bytes.NewReader(overflow), 3); err == nil || !strings.Contains(err.Error(),
		"claims extents") {
		t.Errorf("extents that overflow: error %v", err)
	}
}

// What is accepted is as long as its header says, and nothing is lost. Both uses are tried: labels and images.
func FuzzIDX(f *testing.F) {
	for _, file := range [][]byte{nil, idx([]byte{1, 2}, 2), idx([]byte{1, 2, 3, 4}, 1, 2, 2),
		idx(nil, 1<<31, 1<<31, 1<<31), idx([]byte{1}, 3)} {
		f.Add(file)
		f.Add(zipped(f, file))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, dimensions := range []int{1, 3} {
			_, _, _ = readMaybeGzip(bytes.NewReader(file), dimensions)
			extents, content, err := readIDX(bytes.NewReader(file), dimensions)
			if err == nil && !bytes.Equal(idx(content, extents...), file) {
				t.Fatalf("%d bytes were accepted as extents %v, others came back", len(file), extents)
			}
		}
	})
}

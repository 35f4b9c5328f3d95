package weights

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// raw makes a file of a header and data, right or wrong.
func raw(header string, data int) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(file, header...), make([]byte, data)...)
}

func written(t testing.TB, f File) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Encode(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// checkError wants one short line with all the parts.
func checkError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
		t.Errorf("error %q is more than a line", err)
	}
}

package weights

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadRefuses(t *testing.T) {
	entry := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"a":{"dtype":%s,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	good := entry(`"F32"`, "[2]", "[0,8]")
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":     {nil, "has 0 bytes, too few"},
		"short":     {make([]byte, 7), "has 7 bytes, too few"},
		"no header": {raw("", 0), "not a JSON object"},
		"header too long": {append(binary.LittleEndian.AppendUint64(nil, maxHeader+1), make([]byte, 50)...),
			"claims a header of 100000001 bytes"},
		"huge header": {append(binary.LittleEndian.AppendUint64(nil, math.MaxUint64), make([]byte, 50)...),
			"claims a header of 18446744073709551615 bytes"},
		"cut in header":     {raw(good, 8)[:20], "truncated: has 20 bytes, the header alone ends at"},
		"cut in data":       {raw(good, 7), `truncated: tensor "a" ends at byte 8 of the data, the file at 7`},
		"more data":         {raw(good, 9), "has 9 bytes of data, of which tensors cover 8"},
		"data, no tensors":  {raw("{}", 4), "has 4 bytes of data, of which tensors cover 0"},
		"starts with space": {raw(" "+good, 8), "not a JSON object"},
		"array":             {raw("[]", 0), "not a JSON object"},
		"not UTF-8":         {raw("{\"\xff\":1}", 0), "not a JSON object"},
		"two objects":       {raw("{}{}", 0), "not a JSON object"},
		"bad syntax":        {raw(good[:len(good)-1], 8), "not a JSON object"},
		"zeros after":       {raw(good+"\x00", 8), "not a JSON object"},
		"comma":             {raw(`{"a":{},}`, 0), "not a JSON object"},
		"no object":         {raw(`{"a":7}`, 0), `tensor "a": "7" at byte 6 of the header, want an object`},
		"nested":            {raw(`{"a":[[[]]]}`, 0), `want an object`},
		"no fields":         {raw(`{"a":{}}`, 0), `tensor "a": wants dtype, shape and two data_offsets`},
		"no offsets":        {raw(`{"a":{"dtype":"F32","shape":[0]}}`, 0), "wants dtype, shape and two data_offsets"},
		"wrong case":        {raw(strings.Replace(good, "shape", "Shape", 1), 8), `"Shape" is no field`},
		"unknown field": {raw(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"x":1}}`, 0),
			`"x" is no field`},
		"field twice": {raw(`{"a":{"dtype":"F32","shape":[0],"shape":[0],"data_offsets":[0,0]}}`, 0),
			`"shape" is there twice`},
		"tensor twice": {raw(
			`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"\u0061":{"dtype":"F32","shape":[0],`+
				`"data_offsets":[0,0]}}`, 0), `"a" is in the header twice`},
		"complex numbers": {raw(entry(`"C64"`, "[1]", "[0,8]"), 8),
			`tensor "a": has type "C64", which is not known: convert`},
		"no type":       {raw(entry(`null`, "[4]", "[0,8]"), 8), "which is not known"},
		"halves":        {raw(entry(`"F16"`, "[2]", "[0,8]"), 8), "data_offsets 0 to 8, want 4 bytes for shape [2]"},
		"whole numbers": {raw(entry(`"I64"`, "[2]", "[0,8]"), 8), "data_offsets 0 to 8, want 16 bytes for shape [2]"},
		"fraction": {raw(entry(`"F32"`, "[2.0]", "[0,8]"), 8),
			`"2.0" at byte 32 of the header, want a whole number`},
		"exponent":        {raw(entry(`"F32"`, "[2e0]", "[0,8]"), 8), "want a whole number"},
		"negative extent": {raw(entry(`"F32"`, "[-2]", "[0,8]"), 8), "want a whole number"},
		"text extent":     {raw(entry(`"F32"`, `["2"]`, "[0,8]"), 8), "want a whole number"},
		"large extent":    {raw(entry(`"F32"`, "[9223372036854775808]", "[0,8]"), 8), "want a whole number"},
		"shape no array":  {raw(entry(`"F32"`, "2", "[0,8]"), 8), "want an array"},
		"overflow": {raw(entry(`"F32"`, "[4294967296,4294967296]", "[0,0]"), 0),
			"more bytes than can be counted"},
		"overflow of bytes": {raw(entry(`"F32"`, "[4611686018427387904]", "[0,0]"), 0),
			"more bytes than can be counted"},
		"rank": {raw(entry(`"F32"`, "["+strings.Repeat("1,", 64)+"1]", "[0,4]"), 4),
			"more than 64 numbers"},
		"three offsets": {raw(entry(`"F32"`, "[2]", "[0,8,9]"), 8), "more than 2 numbers"},
		"one offset":    {raw(entry(`"F32"`, "[2]", "[8]"), 8), "two data_offsets"},
		"offsets backwards": {raw(entry(`"F32"`, "[2]", "[8,0]"), 8),
			"data_offsets 8 to 0, want 8 bytes for shape [2]"},
		"offsets too near": {raw(entry(`"F32"`, "[2]", "[0,4]"), 4),
			"data_offsets 0 to 4, want 8 bytes for shape [2]"},
		"past the end": {raw(entry(`"F32"`, "[250000000000]", "[0,1000000000000]"), 8), "truncated"},
		"gap at the start": {raw(entry(`"F32"`, "[2]", "[4,12]"), 12),
			`tensor "a" starts at byte 4 of the data, want 0`},
		"overlap": {
			raw(
				`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],`+
					`"data_offsets":[4,12]}}`, 12),
			`tensor "b" starts at byte 4 of the data, want 8`},
		"gap between": {
			raw(
				`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],`+
					`"data_offsets":[12,16]}}`, 16),
			`tensor "b" starts at byte 12 of the data, want 8`},
		"metadata no text":   {raw(`{"__metadata__":{"a":1}}`, 0), `want a string`},
		"metadata no object": {raw(`{"__metadata__":"a"}`, 0), `want an object`},
		"metadata twice": {raw(`{"__metadata__":{},"__metadata__":{}}`, 0),
			`"__metadata__" is in the header twice`},
		"key twice": {raw(`{"__metadata__":{"a":"","a":""}}`, 0), `"a" is in the metadata twice`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "w.safetensors")
			writeRaw(t, path, c.file)
			_, err := Read(path)
			checkError(t, err, path, c.want)
		})
	}
}

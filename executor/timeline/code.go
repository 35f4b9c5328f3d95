package timeline

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
)

// maxSection is how long a section may be that Decode takes.
const maxSection = 64 << 20

// Encode is a section as it travels.
func Encode(s Section) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if err := json.NewEncoder(w).Encode(s); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Decode reads what Encode has written. The error says what makes no sense.
func Decode(data []byte) (Section, error) {
	var s Section
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return s, fmt.Errorf("a part of a trace: %w", err)
	}
	if err := json.NewDecoder(io.LimitReader(r, maxSection)).Decode(&s); err != nil {
		return Section{}, fmt.Errorf("a part of a trace: %w", err)
	}
	for i := range s.Spans {
		if lane := s.Spans[i].Lane; lane < 0 || lane >= len(s.Lanes) {
			return Section{}, fmt.Errorf("a part of a trace of %s: command %d is on lane %d of %d", s.Job, i, lane,
				len(s.Lanes))
		}
	}
	return s, nil
}

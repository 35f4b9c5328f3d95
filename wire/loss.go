package wire

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// loss is a float32 that keeps its bits in JSON, which has no word for NaN and infinity: those are strings such as
// "0x7fc00000".
type loss float32

func (l loss) MarshalJSON() ([]byte, error) {
	f := float64(l)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Appendf(nil, `"0x%08x"`, math.Float32bits(float32(l))), nil
	}
	return json.Marshal(float32(l))
}

func (l *loss) UnmarshalJSON(text []byte) error {
	if len(text) == 0 || text[0] != '"' {
		return json.Unmarshal(text, (*float32)(l))
	}
	var word string
	if err := json.Unmarshal(text, &word); err != nil {
		return err
	}
	bits, err := strconv.ParseUint(word, 0, 32)
	if err != nil {
		return fmt.Errorf("loss %s is neither a number nor the bits of one", clip(word))
	}
	*l = loss(math.Float32frombits(uint32(bits)))
	return nil
}

type plainResult Result

// resultJSON is the form of a Result: its own Losses hide those of plainResult.
type resultJSON struct {
	Losses []loss `json:"losses,omitempty"`
	*plainResult
}

func (r Result) MarshalJSON() ([]byte, error) {
	text := resultJSON{plainResult: (*plainResult)(&r)}
	for _, l := range r.Losses {
		text.Losses = append(text.Losses, loss(l))
	}
	return json.Marshal(text)
}

func (r *Result) UnmarshalJSON(data []byte) error {
	*r = Result{}
	text := resultJSON{plainResult: (*plainResult)(r)}
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	for _, l := range text.Losses {
		r.Losses = append(r.Losses, float32(l))
	}
	return nil
}

type plainRecord Record

// recordJSON is the form of a Record: its own Loss hides that of plainRecord.
type recordJSON struct {
	*plainRecord
	Loss *loss `json:"loss,omitempty"`
}

func (r Record) MarshalJSON() ([]byte, error) {
	return json.Marshal(recordJSON{Loss: (*loss)(r.Loss), plainRecord: (*plainRecord)(&r)})
}

func (r *Record) UnmarshalJSON(data []byte) error {
	*r = Record{}
	text := recordJSON{plainRecord: (*plainRecord)(r)}
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	r.Loss = (*float32)(text.Loss)
	return nil
}

type plainReport Report

// reportJSON is the form of a Report: its own Loss hides that of plainReport.
type reportJSON struct {
	Loss *loss `json:"loss,omitempty"`
	*plainReport
}

func (r Report) MarshalJSON() ([]byte, error) {
	return json.Marshal(reportJSON{Loss: (*loss)(r.Loss), plainReport: (*plainReport)(&r)})
}

func (r *Report) UnmarshalJSON(data []byte) error {
	*r = Report{}
	text := reportJSON{plainReport: (*plainReport)(r)}
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	r.Loss = (*float32)(text.Loss)
	return nil
}

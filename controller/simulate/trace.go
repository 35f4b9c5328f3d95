package simulate

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Arrival is a job of a trace.
type Arrival struct {
	// Submit is since the beginning of the trace.
	Submit time.Duration
	// Model is the name of a network.
	Model string
	Batch int
	// Iterations is how many complete iterations the job trains. 0: as many as take Alone.
	Iterations int
	// Tenant is the tenant that the job belongs to. "": it belongs to none.
	Tenant string

	// Alone is the time that the job takes alone on a device, if that is what a trace knows. 0: Iterations counts.
	Alone time.Duration
}

// columns are those of a trace of ours.
var columns = []string{"submit_s", "model", "batch", "iterations", "tenant"}

// Read reads a trace: CSV with a header line, columns submit_s (seconds, in any order of rows), model, batch,
// iterations and, if it is there, tenant. Arrivals are returned in the order of their submission.
func Read(r io.Reader) ([]Arrival, error) {
	rows := csv.NewReader(skipByteOrderMark(r))
	rows.ReuseRecord = true
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the trace is empty: want a line %s", strings.Join(columns, ","))
	} else if err != nil {
		return nil, err
	}
	at, err := columnIndexes(header)
	if err != nil {
		return nil, err
	}
	var all []Arrival
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		a, err := parseArrival(row, at)
		if err != nil {
			line, _ := rows.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		all = append(all, a)
	}
	return sortArrivals(all), nil
}

// skipByteOrderMark leaves out the byte order mark with which spreadsheets begin a file.
func skipByteOrderMark(r io.Reader) io.Reader {
	const mark = "\ufeff"
	in := bufio.NewReader(r)
	if start, _ := in.Peek(len(mark)); string(start) == mark {
		in.Discard(len(mark))
	}
	return in
}

// columnIndexes returns where each of columns is in a header. -1: a tenant is not there.
func columnIndexes(header []string) ([]int, error) {
	at := make([]int, len(columns))
	for i, name := range columns {
		is := func(h string) bool { return strings.TrimSpace(h) == name }
		at[i] = slices.IndexFunc(header, is)
		switch {
		case at[i] >= 0 && slices.ContainsFunc(header[at[i]+1:], is):
			return nil, fmt.Errorf("line 1: there are two columns %s: give one", name)
		case at[i] < 0 && name != "tenant":
			return nil, fmt.Errorf("line 1: there is no column %s: want %s", name, strings.Join(columns, ","))
		}
	}
	return at, nil
}

func parseArrival(row []string, at []int) (a Arrival, err error) {
	field := func(i int) string { return strings.TrimSpace(row[at[i]]) }
	if a.Submit, err = parseSeconds(field(0)); err != nil {
		return a, fmt.Errorf("submit_s: %w", err)
	}
	if a.Model = field(1); a.Model == "" {
		return a, errors.New("model: there is none")
	}
	if a.Batch, err = parsePositive(field(2)); err != nil {
		return a, fmt.Errorf("batch: %w", err)
	}
	if a.Iterations, err = parsePositive(field(3)); err != nil {
		return a, fmt.Errorf("iterations: %w", err)
	}
	if at[4] >= 0 {
		a.Tenant = field(4)
	}
	return a, nil
}

// maxTime is the longest time that traces may tell of: ten years.
const maxTime = 10 * 365 * 24 * time.Hour

func parseSeconds(text string) (time.Duration, error) {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || !(s >= 0 && s <= maxTime.Seconds()) {
		return 0, fmt.Errorf("%q: give seconds from 0 on, up to ten years", text)
	}
	return time.Duration(math.Round(s * float64(time.Second))), nil
}

func parsePositive(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%q: give a whole number from 1 to %d", text, math.MaxInt32)
	}
	return n, nil
}

// sortArrivals orders arrivals by time. Those of one moment keep their order.
func sortArrivals(all []Arrival) []Arrival {
	slices.SortStableFunc(all, func(a, b Arrival) int { return int(min(1, max(-1, a.Submit-b.Submit))) })
	return all
}

// Write writes a trace as Read reads it. Its arrivals have iterations.
func Write(w io.Writer, all []Arrival) error {
	out := csv.NewWriter(w)
	if err := out.Write(columns); err != nil {
		return err
	}
	for _, a := range all {
		if err := out.Write([]string{strconv.FormatFloat(a.Submit.Seconds(), 'f', -1, 64), a.Model,
			strconv.Itoa(a.Batch),
			strconv.Itoa(a.Iterations), a.Tenant}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

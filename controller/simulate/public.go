package simulate

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Skipped counts the rows of a public trace that became no job, by the reason why.
type Skipped map[string]int

// Reasons are why rows were skipped.
const (
	severalDevices = "need more than one device"
	noLength       = "have no beginning or no end, or both at once"
	unfinished     = "did not end well"
	noGPU          = "use no GPU"
	unknownNetwork = "train a network that there is none like here"
)

// Formats are those that ReadPublic reads.
func Formats() []string { return []string{"alibaba", "gavel", "philly"} }

// ReadPublic reads the rows of a public trace, as its publishers describe them:
//
//   - alibaba: pai_task_table.csv of cluster-trace-gpu-v2020 (columns job_name, task_name, inst_num, status,
//     start_time, end_time, plan_cpu, plan_mem, plan_gpu, gpu_type; a header line may be there). A task of one
//     instance on at most one GPU that was terminated becomes a job that is submitted when it began: the table has
//     no other time, and no user.
//   - philly: cluster_job_log of philly-traces, JSON. A job that passed on one GPU is submitted when it was, and trains
//     for as long as its attempts lasted together. Its tenant is its virtual cluster.
//   - gavel: a .trace of gavel: fields between tabs (job_type, command, [working_directory,] num_steps_arg,
//     needs_data_dir, total_steps, and then arrival_time, scale_factor in its older files or scale_factor,
//     priority_weight, SLO, arrival_time). ResNet-18, ResNet-50, Transformer and LM become resnet18, resnet50, bert and
//     gnmt of the same batch and number of steps.
//
// alibaba and philly do not say what a job trains: its name decides which of mix it is, and it gets as many
// iterations as take as long alone.
func ReadPublic(format string, r io.Reader, mix []Kind) ([]Arrival, Skipped, error) {
	skipped := make(Skipped)
	var all []Arrival
	var err error
	r = skipByteOrderMark(r)
	switch format {
	case "alibaba":
		all, err = readAlibaba(r, mix, skipped)
	case "philly":
		all, err = readPhilly(r, mix, skipped)
	case "gavel":
		all, err = readGavel(r, skipped)
	default:
		return nil, nil, fmt.Errorf("there is no format %q: give one of %s", format, strings.Join(Formats(), ", "))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("format %s: %w", format, err)
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("format %s: no row becomes a job: %s", format, skipped)
	}
	all = sortArrivals(all)
	for i, first := len(all)-1, all[0].Submit; i >= 0; i-- {
		all[i].Submit -= first
	}
	return all, skipped, nil
}

// String tells them in the order of their reasons; "": there are none.
func (s Skipped) String() string {
	var parts []string
	for why, n := range s {
		parts = append(parts, fmt.Sprintf("%d %s", n, why))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// alibabaColumns is how many pai_task_table has.
const alibabaColumns = 10

func readAlibaba(r io.Reader, mix []Kind, skipped Skipped) ([]Arrival, error) {
	rows := csv.NewReader(r)
	rows.FieldsPerRecord, rows.ReuseRecord = alibabaColumns, true
	var all []Arrival
	for line := 1; ; line++ {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		name, instances, status, begin, end, gpu := row[0], row[2], row[3], row[4], row[5], row[8]
		if line == 1 && name == "job_name" {
			continue
		}
		percent, err := parseNumber(gpu)
		if err != nil {
			return nil, fmt.Errorf("line %d: plan_gpu: %w", line, err)
		}
		n, err := parseNumber(instances)
		if err != nil {
			return nil, fmt.Errorf("line %d: inst_num: %w", line, err)
		}
		switch {
		case status != "Terminated":
			skipped[unfinished]++
			continue
		case percent == 0:
			skipped[noGPU]++
			continue
		case percent*n > 100:
			skipped[severalDevices]++
			continue
		case begin == "" || end == "":
			skipped[noLength]++
			continue
		}
		from, err := parseSeconds(begin)
		if err != nil {
			return nil, fmt.Errorf("line %d: start_time: %w", line, err)
		}
		to, err := parseSeconds(end)
		if err != nil {
			return nil, fmt.Errorf("line %d: end_time: %w", line, err)
		}
		all = appendTimed(all, name, "", from, to-from, mix, skipped)
	}
}

// parseNumber is a field that may be empty, which is 0.
func parseNumber(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= math.MaxInt32) {
		return 0, fmt.Errorf("%q is no number from 0 on", text)
	}
	return x, nil
}

// appendTimed adds a job of which is known how long it took.
func appendTimed(all []Arrival, name, tenant string, submit, alone time.Duration, mix []Kind,
	skipped Skipped) []Arrival {
	if alone <= 0 {
		skipped[noLength]++
		return all
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	k := mix[h.Sum32()%uint32(len(mix))]
	return append(all, Arrival{Submit: submit, Model: k.Model, Batch: k.Batch, Tenant: tenant, Alone: alone})
}

// phillyJob is an element of cluster_job_log.
type phillyJob struct {
	Status    string  `json:"status"`
	VC        string  `json:"vc"`
	ID        string  `json:"jobid"`
	Submitted *string `json:"submitted_time"`
	Attempts  []struct {
		Start  *string `json:"start_time"`
		End    *string `json:"end_time"`
		Detail []struct {
			GPUs []string `json:"gpus"`
		} `json:"detail"`
	} `json:"attempts"`
}

// phillyTime is how cluster_job_log writes times.
const phillyTime = "2006-01-02 15:04:05"

func readPhilly(r io.Reader, mix []Kind, skipped Skipped) ([]Arrival, error) {
	in := json.NewDecoder(r)
	if start, err := in.Token(); err != nil || start != json.Delim('[') {
		return nil, errors.New("it is no list of jobs")
	}
	var all []Arrival
	for i := 1; in.More(); i++ {
		var j phillyJob
		if err := in.Decode(&j); err != nil {
			return nil, fmt.Errorf("job %d: %w", i, err)
		}
		if j.Status != "Pass" {
			skipped[unfinished]++
			continue
		}
		submit, alone, gpus, err := j.lengths()
		if err != nil {
			return nil, fmt.Errorf("job %d, %s: %w", i, j.ID, err)
		}
		switch {
		case gpus > 1:
			skipped[severalDevices]++
		case gpus == 0:
			skipped[noGPU]++
		default:
			all = appendTimed(all, j.ID, j.VC, submit, alone, mix, skipped)
		}
	}
	return all, nil
}

// lengths returns when a job was submitted, how long its attempts lasted together (0: one has no beginning or no end),
// and on how many GPUs at most.
func (j *phillyJob) lengths() (submit, alone time.Duration, gpus int, err error) {
	at := func(text *string) (time.Time, error) {
		if text == nil || *text == "None" {
			return time.Time{}, nil
		}
		return time.Parse(phillyTime, *text)
	}
	submitted, err := at(j.Submitted)
	switch {
	case err != nil:
	case submitted.IsZero():
		err = errors.New("there is none")
	case submitted.Year() < 1970 || submitted.Year() > 2200:
		err = fmt.Errorf("year %d: give one from 1970 to 2200", submitted.Year())
	}
	if err != nil {
		return 0, 0, 0, fmt.Errorf("submitted_time: %w", err)
	}
	for _, a := range j.Attempts {
		n := 0
		for _, d := range a.Detail {
			n += len(d.GPUs)
		}
		gpus = max(gpus, n)
		start, err := at(a.Start)
		if err != nil {
			return 0, 0, 0, fmt.Errorf("start_time: %w", err)
		}
		end, err := at(a.End)
		if err != nil {
			return 0, 0, 0, fmt.Errorf("end_time: %w", err)
		}
		if start.IsZero() || end.IsZero() {
			return 0, 0, gpus, nil
		}
		alone = min(alone+min(max(0, end.Sub(start)), maxTime), maxTime)
	}
	return time.Duration(submitted.Unix()) * time.Second, alone, gpus, nil
}

// standIns are the networks here that are most like those of gavel.
var standIns = map[string]string{"ResNet-18": "resnet18", "ResNet-50": "resnet50", "Transformer": "bert", "LM": "gnmt"}

func readGavel(r io.Reader, skipped Skipped) ([]Arrival, error) {
	var all []Arrival
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		a, why, err := gavelJob(strings.Split(lines.Text(), "\t"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if why != "" {
			skipped[why]++
			continue
		}
		all = append(all, a)
	}
	return all, lines.Err()
}

// gavelJob returns a job, or why there is none.
func gavelJob(f []string) (a Arrival, skip string, err error) {
	var steps, arrival, scale string
	switch len(f) {
	case 7:
		steps, arrival, scale = f[4], f[5], f[6]
	case 10:
		steps, scale, arrival = f[5], f[6], f[9]
	default:
		return a, "", fmt.Errorf("it has %d fields between tabs, want 7 or 10", len(f))
	}
	name, rest, _ := strings.Cut(f[0], " (batch size ")
	model, known := standIns[name]
	devices, err := parseNumber(scale)
	if err != nil {
		return a, "", fmt.Errorf("scale_factor: %w", err)
	}
	if devices != 1 {
		return a, severalDevices, nil
	}
	if !known {
		return a, unknownNetwork, nil
	}
	a.Model = model
	if a.Batch, err = parsePositive(strings.TrimSuffix(rest, ")")); err != nil {
		return a, "", fmt.Errorf("batch size: %w", err)
	}
	if a.Iterations, err = parsePositive(steps); err != nil {
		return a, "", fmt.Errorf("total_steps: %w", err)
	}
	if a.Submit, err = parseSeconds(arrival); err != nil {
		return a, "", fmt.Errorf("arrival_time: %w", err)
	}
	return a, "", nil
}

package main

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"tensile/device"
	"tensile/device/cpu"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/scheduler"
)

// parseBytes reads the amount that a flag gives.
func parseBytes(flag, text string) (graph.Bytes, error) {
	b, err := graph.ParseBytes(text)
	if err != nil {
		return 0, fmt.Errorf("%s %w", flag, err)
	}
	if b > graph.MaxTotal {
		return 0, fmt.Errorf("%s %s: give at most %s", flag, text, graph.MaxTotal)
	}
	return b, nil
}

// parsePercent reads a percentage such as 60%; ok is false when there is no percent sign.
func parsePercent(text string) (percent float64, ok bool, err error) {
	return parseShare("--budget", text)
}

// parseShare reads the percentage that a flag gives; ok is false when there is no percent sign.
func parseShare(flag, text string) (percent float64, ok bool, err error) {
	number, ok := strings.CutSuffix(text, "%")
	if !ok {
		return 0, false, nil
	}
	percent, err = strconv.ParseFloat(number, 64)
	if err != nil || !(percent > 0) || percent > 1000 {
		return 0, true, fmt.Errorf("%s %q: give a percentage such as 60%%", flag, text)
	}
	return percent, true, nil
}

// parseOverhead reads --max-overhead as a share of the time without a plan: 0.05 for 5% and for 1.05. A factor is below
// 2, so that 5 is not taken for one.
func parseOverhead(text string) (float64, error) {
	percent, isPercent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(percent, 64)
	if v /= 100; !isPercent {
		v = v*100 - 1
	}
	if text != "" && err == nil && !isPercent && v >= 1 {
		return 0, fmt.Errorf("--max-overhead %s: is %[1]s%% meant? A factor is from 1 to 2, as 1.05", text)
	}
	if text != "" && (err != nil || !(v >= 0 && v <= 100)) {
		return 0, fmt.Errorf("--max-overhead %q: give a percentage such as 5%%, or a factor such as 1.05", text)
	}
	return v, nil
}

// listValue reads one value of a list; want says which there are.
type listValue[T any] struct {
	parse func(string) (T, bool)
	want  string
}

var (
	priorityValue = listValue[int]{func(s string) (int, bool) {
		v, err := strconv.Atoi(s)
		return v, err == nil && 1 <= v && v <= scheduler.MaxWeight
	}, fmt.Sprintf("whole numbers from 1 to %d", scheduler.MaxWeight)}

	swapRateValue = listValue[float64]{func(s string) (float64, bool) {
		v, err := strconv.ParseFloat(s, 64)
		return v, err == nil && 0 <= v && v <= 1
	}, "shares from 0 (no limit) to 1"}
)

// parsePerModel reads a list with a value for each of n MODELs, or one for all; nil if there is none.
func parsePerModel[T any](flag, text string, n int, value listValue[T]) ([]T, error) {
	if text == "" {
		return nil, nil
	}
	var values []T
	for word := range strings.SplitSeq(text, ",") {
		v, ok := value.parse(word)
		if !ok {
			return nil, fmt.Errorf("%s %q: %q is wrong: give %s, one per MODEL or one for all", flag, text, word,
				value.want)
		}
		values = append(values, v)
	}
	if len(values) == 1 {
		return slices.Repeat(values, n), nil
	}
	if len(values) != n {
		return nil, fmt.Errorf("%s %q: %d values for %d MODELs: give one per MODEL or one for all", flag, text,
			len(values), n)
	}
	return values, nil
}

func simNames() string { return strings.Join(cost.Names(), ", ") }

// simDevices are the values of --device that simulate one.
func simDevices() []string {
	var names []string
	for _, name := range cost.Names() {
		names = append(names, "sim:"+name)
	}
	return names
}

// linkForms says what --link takes, in help and in errors.
func linkForms() string {
	return "none, a rate such as 500MB/s, or with --device cpu the name of a device (" + simNames() + ") whose ratio " +
		"of bandwidth to FLOPS is matched"
}

// linkRate is the limit of each copy direction; 0: none.
type linkRate struct {
	rate cost.BytesPerSecond
	why  string
}

// flag is the --link of another process with the same limit.
func (l linkRate) flag() string {
	if l.rate == 0 {
		return "none"
	}
	return fmt.Sprintf("%.0fB/s", max(1, float64(l.rate)))
}

// simulatedFacts are those of a device that is simulated, by the value of --device.
func simulatedFacts(device string) (cost.Facts, error) {
	name, ok := strings.CutPrefix(device, "sim:")
	if !ok {
		return cost.Facts{}, fmt.Errorf("--device %q: give sim:NAME (%s)", device, simNames())
	}
	facts, err := cost.Device(name)
	if err != nil {
		return cost.Facts{}, fmt.Errorf("--device %q: %w", device, err)
	}
	return facts, nil
}

const maxThreads = 1024

// openDevice opens the device that --device names, with the limit of --link.
func openDevice(f *planFlags) (device.Device, linkRate, error) {
	kind, _, _ := strings.Cut(f.device, ":")
	if f.fake && kind != "cuda" {
		return nil, linkRate{}, fmt.Errorf("--fake: a driver without a GPU is for --device cuda, not for %s", f.device)
	}
	if f.simulated() {
		facts, err := simulatedFacts(f.device)
		if err != nil {
			return nil, linkRate{}, err
		}
		link, err := parseLink(f.link, cost.Facts{})
		if err != nil {
			return nil, linkRate{}, err
		}
		if link.rate > 0 {
			facts.Out.Rate, facts.In.Rate = link.rate, link.rate
		}
		return f.latency.Simulated(facts, f.wrong), link, nil
	}
	switch {
	case kind == "cuda":
		d, err := openCUDA(f)
		if err != nil {
			return nil, linkRate{}, err
		}
		return d.Paging(), linkRate{}, nil
	case f.device == "cpu":
	default:
		return nil, linkRate{}, fmt.Errorf("--device %q: use cpu, cuda or sim:NAME (%s)", f.device, simNames())
	}
	if f.threads == 0 {
		f.threads, f.cores = min(runtime.GOMAXPROCS(0), maxThreads), true
	}
	if f.threads < 1 || f.threads > maxThreads {
		return nil, linkRate{}, fmt.Errorf("--threads %d: give 1 to %d", f.threads, maxThreads)
	}
	d, err := cpu.New(cpu.Options{Threads: f.threads})
	if err != nil {
		return nil, linkRate{}, err
	}
	link, err := parseLink(f.link, d.Facts())
	if err != nil {
		d.Close()
		return nil, linkRate{}, err
	}
	d.LimitLink(link.rate)
	return d, link, nil
}

// parseLink reads --link. A device's name stands for the rate at which copies and arithmetic are in the same relation
// as there; here gives the arithmetic, and only a device that computes has one.
func parseLink(text string, here cost.Facts) (linkRate, error) {
	if text == "none" || text == "" {
		return linkRate{}, nil
	}
	if there, err := cost.Device(text); err == nil {
		if here.Compute == 0 {
			return linkRate{}, fmt.Errorf("--link %s: on sim:NAME the link is the device's own; give a rate such as "+
				"12GB/s to change it", text)
		}
		perFLOP := float64(there.Out.Rate) / (there.ComputeShare * float64(there.Compute))
		rate := cost.BytesPerSecond(perFLOP * here.ComputeShare * float64(here.Compute))
		return linkRate{rate, fmt.Sprintf("%.3g bytes per FLOP as on %s, at %.3g FLOP/s here", perFLOP, text,
			float64(here.Compute))}, nil
	}
	number, found := strings.CutSuffix(text, "/s")
	if bytes, err := parseBytes("--link", number); found && err == nil {
		return linkRate{cost.BytesPerSecond(bytes), "given"}, nil
	}
	return linkRate{}, fmt.Errorf("--link %q: give %s", text, linkForms())
}

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/observe/report"
	"tensile/plan/pool"
	"tensile/plan/pool/trace"
	"tensile/scheduler/rivals/autoswap"
)

// swapFlags say how AutoSwap swaps blocks of a trace before they are packed.
type swapFlags struct {
	limit     string
	score     string
	link      string
	iteration time.Duration
	above     string
}

func (f *swapFlags) register(flags *pflag.FlagSet) {
	var scores []string
	for _, s := range autoswap.Scores() {
		scores = append(scores, string(s))
	}
	flags.StringVar(&f.limit, "autoswap", "",
		"with --trace and --iteration: swap blocks to the host to keep memory below this limit, such as 512MiB or "+
			"60%; free means as low as possible without costing time")
	flags.DurationVar(&f.iteration, "iteration", 0, "with --autoswap: duration of an iteration, such as 40ms")
	flags.StringVar(&f.score, "score", "", "with --autoswap: rank blocks by "+strings.Join(scores, ", ")+
		" (default "+scores[0]+")")
	flags.StringVar(&f.link, "link", "", "with --autoswap: copy rate per direction (default 12GB/s)")
	flags.StringVar(&f.above, "swap-above", "", "with --autoswap: minimum size of blocks to swap (default 1MB)")
}

// check refuses flags that do not belong together.
func (f *swapFlags) check(fromTrace bool) error {
	switch {
	case f.limit == "" && (f.iteration != 0 || f.score != "" || f.link != "" || f.above != ""):
		return fmt.Errorf("--iteration, --score, --link and --swap-above are for --autoswap: give that a limit too")
	case f.limit == "":
		return nil
	case !fromTrace:
		return fmt.Errorf("--autoswap needs reads and writes: give it a trace, with --trace")
	case f.iteration <= 0:
		return fmt.Errorf("--autoswap needs to know what an iteration takes: give --iteration, such as 40ms")
	case f.score != "" && !slices.Contains(autoswap.Scores(), autoswap.Score(f.score)):
		return fmt.Errorf("--score %q: choose one of %v", f.score, autoswap.Scores())
	}
	return nil
}

// options are those of AutoSwap, and the link.
func (f *swapFlags) options() (autoswap.Options, cost.Link, error) {
	o := autoswap.Options{Score: autoswap.Score(cmp.Or(f.score, string(autoswap.BO)))}
	rate, err := parseLink(cmp.Or(f.link, "12GB/s"), cost.Facts{})
	if err != nil {
		return o, cost.Link{}, err
	}
	if f.above != "" {
		if o.Smallest, err = graph.ParseBytes(f.above); err != nil {
			return o, cost.Link{}, fmt.Errorf("--swap-above %w", err)
		}
	}
	return o, cost.Link{Rate: rate.rate}, nil
}

// swap has AutoSwap choose, and packs the stays of the blocks instead of the blocks.
func (p *packing) swap(f *swapFlags, t trace.Trace, l *trace.Lifetimes) error {
	o, link, err := f.options()
	if err != nil {
		return err
	}
	it, err := autoswap.OfTrace(t, l, f.iteration, link, link)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	limit, choice, err := f.choose(it, o)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	_, before := it.Peak()
	p.swapping = report.NewSwapping(string(o.Score), limit, before, choice.Load, it.Length(), choice.Time)
	for _, x := range choice.Swaps {
		pause := &it.Pauses[x.Pause]
		p.swapping.Swaps = append(p.swapping.Swaps, report.BlockSwap{Block: p.ids[it.Buffers[x.Pause]],
			Bytes: int64(pause.Bytes), Out: pause.From, Free: x.Drop, In: x.In, Next: pause.To})
	}
	var ids []string
	var stays []pool.Buffer
	for _, s := range it.Stays(choice) {
		id := p.ids[s.Of]
		if s.Number > 0 {
			id = fmt.Sprintf("%s.%d", id, s.Number)
		}
		ids, stays = append(ids, id), append(stays, s.Buffer)
	}
	p.ids, p.buffers = ids, stays
	return nil
}

// choose has AutoSwap choose within the limit, or at no cost.
func (f *swapFlags) choose(it *autoswap.Traced, o autoswap.Options) (graph.Bytes, *autoswap.Choice, error) {
	count := func(int) {}
	if f.limit == "free" {
		return 0, it.WithoutOverhead(o, count), nil
	}
	_, peak := it.Peak()
	percent, isPercent, err := parseShare("--autoswap", f.limit)
	if err != nil {
		return 0, nil, err
	}
	limit := graph.Bytes(percent / 100 * float64(peak))
	if !isPercent {
		if limit, err = parseBytes("--autoswap", f.limit); err != nil {
			return 0, nil, err
		}
	}
	choice, ok := it.Within(limit, o, count)
	if !ok {
		slot, least := it.Least(o)
		return 0, nil, fmt.Errorf("event %d of the iteration needs %s with all swapped that may be: give --autoswap "+
			"that, or let smaller blocks be swapped with --swap-above", slot, least)
	}
	return limit, choice, nil
}

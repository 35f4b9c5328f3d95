package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tensile/observe/report"
	"tensile/plan/pool"
)

// poolFlags say what is packed and how.
type poolFlags struct {
	capacity string
	deadline time.Duration
	method   string
	output   string
	trace    bool
	device   string
	swap     swapFlags
	json     bool
}

func poolCommand() *cobra.Command {
	var f poolFlags
	c := &cobra.Command{
		Use:   "pool FILE",
		Short: "Pack buffers with known lifetimes into as little memory as possible",
		Long: `Pack buffers with known lifetimes into as little memory as possible, and check the layout.

FILE is a CSV with the columns id,lower,upper,size: one row per buffer, which is needed in the slots
from lower to upper - 1. Optional columns are alignment, offset (a fixed offset), alias (buffers with the
same value share their bytes) and gaps (slots without the bytes, such as 7-9 12-13). With --trace, FILE
is a record of malloc, free, read and write events; its repeating part is found and packed, after
swapping some blocks to the host with --autoswap. - reads standard input.`,
		Example: "  tensile pool input.csv --capacity 1048576 --output offsets.csv\n" +
			"  tensile pool run.trace --trace --autoswap 60% --iteration 40ms",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%s: name one FILE, or - for standard input", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), args[0], c.InOrStdin(), c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&f.capacity, "capacity", "",
		"target capacity, such as 1048576 or 512MiB: the search stops once it is met, and tries longer before giving "+
			"up")
	c.Flags().DurationVar(&f.deadline, "deadline", 0,
		"search time limit, such as 10s (default: a fixed number of steps, so that results are reproducible)")
	c.Flags().StringVar(&f.method, "method", "search", "packing method: "+strings.Join(pool.Methods(), ", "))
	c.Flags().StringVar(&f.output, "output", "", "write the buffers with their offsets to this CSV file")
	c.Flags().BoolVar(&f.trace, "trace", false,
		"read FILE as a trace: one event per line, a CSV of events, or a PyTorch memory snapshot (JSON)")
	c.Flags().StringVar(&f.device, "device", "", "with --trace: device number in a snapshot of several devices")
	f.swap.register(c.Flags())
	c.Flags().BoolVar(&f.json, "json", false, "print a single JSON document")
	return c
}

// packing is what there is to pack.
type packing struct {
	path      string // Path of the file, or -.
	name      string // Name of the file in messages.
	ids       []string
	buffers   []pool.Buffer
	iteration *report.Iteration // nil: not from a trace
	swapping  *report.Swapping  // nil: nothing is to be swapped
	needs     int64             // bytes that are needed even so: what is outside the iteration is not swapped
}

func (f *poolFlags) run(ctx context.Context, path string, in io.Reader, out io.Writer) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	if err := f.swap.check(f.trace); err != nil {
		return err
	}
	if err := checkOutput("--output", f.output); err != nil {
		return err
	}
	p, err := f.read(path, in)
	if err != nil {
		return err
	}
	if options.Rounds == 0 {
		options.Rounds = usualRounds(len(p.buffers))
	}
	begin := time.Now()
	options.Stop = func() bool {
		return ctx.Err() != nil || f.deadline > 0 && time.Since(begin) >= f.deadline
	}
	layout, err := pool.Pack(p.buffers, options)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	took := time.Since(begin)
	invalid := pool.Validate(p.buffers, layout)
	r := report.NewPacking(p.name, p.buffers, layout, took, p.iteration)
	r.Valid, r.Swapping = invalid == nil, p.swapping
	if f.json {
		err = printJSON(out, r)
	} else {
		err = r.WriteTable(out, options.Capacity, p.needs)
	}
	if err != nil {
		return err
	}
	if invalid != nil {
		return fmt.Errorf("%s: the layout is wrong; please report this with the file: %w", p.name, invalid)
	}
	if err := f.write(p, layout); err != nil {
		return err
	}
	return f.verdict(p, layout, options.Capacity, context.Cause(ctx))
}

// options are those of the search.
func (f *poolFlags) options() (pool.Options, error) {
	o := pool.Options{Method: f.method}
	if !slices.Contains(pool.Methods(), f.method) {
		return o, fmt.Errorf("--method %q: choose %s", f.method, strings.Join(pool.Methods(), ", "))
	}
	if f.deadline < 0 {
		return o, fmt.Errorf("--deadline %v: give a time such as 10s", f.deadline)
	}
	var err error
	if f.capacity != "" {
		if o.Capacity, err = parseCapacity(f.capacity); err != nil {
			return o, err
		}
	}
	switch {
	case f.deadline > 0:
		o.Rounds = endless
	case o.Capacity > 0:
		o.Rounds = demanded
	}
	return o, nil
}

const (
	endless  = 1 << 28 // rounds of a search that a deadline ends: they take days
	demanded = 1 << 9  // rounds where there is a capacity to be met: they take seconds for a thousand buffers
	usual    = 1 << 4  // rounds where nothing is asked for: they take up to 0.2 s for a thousand buffers

	few         = 500 // buffers, at most, that make a small instance
	usualForFew = 1 << 7
)

// usualRounds is how long to search where neither a capacity nor a deadline is given. Hard instances of a few hundred
// buffers gain most from many rounds, which take them a second at most.
func usualRounds(buffers int) int {
	if buffers <= few {
		return usualForFew
	}
	return usual
}

// parseCapacity reads a number of bytes, or a size such as 512MiB.
func parseCapacity(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		return n, nil
	}
	n, err := parseBytes("--capacity", text)
	return int64(n), err
}

// read reads the buffers of a file, or those of a trace.
func (f *poolFlags) read(path string, in io.Reader) (*packing, error) {
	device, err := f.snapshotDevice()
	if err != nil {
		return nil, err
	}
	p := &packing{path: path, name: path}
	if path == "-" {
		p.name = "standard input"
	} else {
		file, err := os.Open(path)
		if os.IsNotExist(err) {
			make := "make a CSV with the columns id,lower,upper,size"
			if f.trace {
				make = "name a record of malloc and free, or a memory snapshot of PyTorch"
			}
			return nil, fmt.Errorf("file %s does not exist: %s, or give - to read from standard input", path, make)
		}
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	if f.trace {
		return p, p.readTrace(in, device, &f.swap)
	}
	if p.ids, p.buffers, err = pool.ReadCSV(in, p.name); errors.Is(err, pool.ErrNoCSV) {
		err = fmt.Errorf("%w; if it is a record of malloc and free, give --trace", err)
	}
	return p, err
}

// checkOutput finds out before the work whether its result can be written.
func checkOutput(flag, path string) error {
	if path == "" {
		return nil
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil {
		return fmt.Errorf("%s: %w; make the folder first", flag, err)
	} else if !info.IsDir() {
		return fmt.Errorf("%s: %s is not a folder; make one, or write elsewhere", flag, dir)
	}
	switch info, err := os.Stat(path); {
	case err != nil:
		return checkWritable(flag, dir)
	case info.IsDir():
		return fmt.Errorf("%s: %s is a folder; name a file", flag, path)
	case !info.Mode().IsRegular():
		return nil // such as /dev/stdout
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return file.Close()
}

// write writes the offsets.
func (f *poolFlags) write(p *packing, layout pool.Layout) error {
	if f.output == "" {
		return nil
	}
	var text bytes.Buffer
	if err := pool.WriteCSV(&text, p.ids, p.buffers, layout); err != nil {
		return err
	}
	if err := os.WriteFile(f.output, text.Bytes(), 0o666); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}

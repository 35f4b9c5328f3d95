package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tensile/observe/report"
	"tensile/wire"
	"tensile/wire/bus"
)

// listDevices prints the devices of a controller, once or until it is interrupted.
func listDevices(ctx context.Context, conn *bus.Conn, json, watch bool, out io.Writer) error {
	for first := true; ; first = false {
		a, err := ask(ctx, conn, wire.Request{Verb: wire.Jobs})
		if watch && ctx.Err() != nil {
			return errQuiet
		} else if err != nil {
			return err
		}
		if json {
			err = printJSON(out, report.ControllerDevices(a.Devices))
		} else {
			switch {
			case watch && isTerminal(out):
				fmt.Fprint(out, "\x1b[H\x1b[J")
			case !first:
				fmt.Fprintln(out)
			}
			err = writeDevices(out, a.Devices)
		}
		if err != nil || !watch {
			return err
		}
		select {
		case <-ctx.Done():
			return errQuiet
		case <-time.After(time.Second):
		}
	}
}

// writeDevices prints a line for each device.
func writeDevices(out io.Writer, devices []wire.DeviceState) error {
	if len(devices) == 0 {
		_, err := fmt.Fprintln(out, "no executor has brought a device yet: tensile executor --credentials FILE does")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DEVICE\tHOST\tUSED\tBUDGET\tJOBS\tEXECUTORS\tLINK\tSTATE\tIDENTITY")
	for i := range devices {
		d := &devices[i]
		budget := "-"
		if d.Budget > 0 {
			budget = d.Budget.String()
		}
		link := "-"
		if d.Facts.Out.Rate > 0 {
			link = fmt.Sprintf("%.3gGB/s", float64(d.Facts.Out.Rate)/1e9)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", d.Name, cmp.Or(d.Host, "-"), d.Used, budget, d.Jobs,
			d.Executors, link, stateOf(d), d.Identity)
	}
	return w.Flush()
}

// stateOf says in a word or two whether a device takes jobs.
func stateOf(d *wire.DeviceState) string {
	switch {
	case d.Drained:
		return "drained"
	case d.Own:
		return "the controller's"
	case d.Executors > 0:
		return "ready"
	case d.Silent > 0:
		return "out of reach"
	}
	return "gone"
}

func drainCommand() *cobra.Command {
	var undo bool
	c := steer(&cobra.Command{
		Use:   "drain DEVICE",
		Short: "Move jobs off a device and keep new ones away",
		Long: `Move jobs off a device and keep new ones away. Running jobs checkpoint after the current iteration, and
resume on another device of the same identity that can read the checkpoint, or wait for one; jobs
without checkpoints stay until they end. The device stays drained, across restarts of the controller,
until --undo. Only administrators may drain a device.`,
		Args:    needOne("DEVICE"),
		Example: "  tensile device drain lab2-cpu\n  tensile device drain lab2-cpu --undo",
	}, func(args []string) ([]wire.Request, error) {
		if err := wire.CheckDevice(args[0]); err != nil {
			return nil, err
		}
		return []wire.Request{{Verb: wire.Drain, Device: args[0], Undo: undo}}, nil
	})
	c.Flags().BoolVar(&undo, "undo", false, "accept jobs on the device again")
	return c
}

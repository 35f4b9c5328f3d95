package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tensile/graph/text"
	"tensile/wire"
	"tensile/wire/bus"
)

func tenantCommand() *cobra.Command {
	var share int
	var remove bool
	c := steer(&cobra.Command{
		Use:   "set NAME",
		Short: "Set a user's share of the devices",
		Long: `Set the share of the devices of user NAME, whose credentials were made by
tensile controller credentials NAME --user. As soon as one user has a share, every user is a tenant:
users without one, and the administrator, have the share 1. On each device, tenants with jobs there get
time in proportion to their shares; what one leaves idle the others use. Jobs of tenants that got more
than their share are parked in favor of those that got less, and resume later. Shares persist across
restarts of the controller. --remove removes the share of NAME; without any shares there are no tenants.
Only administrators may set shares.`,
		Args:    needOne("NAME"),
		Example: "  tensile tenants set ada --share 3\n  tensile tenants set ada --remove",
	}, func(args []string) ([]wire.Request, error) {
		if err := wire.CheckName(args[0]); err != nil {
			return nil, err
		}
		switch {
		case remove && share != 0:
			return nil, errors.New("--remove takes the share: leave --share out")
		case !remove && share == 0:
			return nil, fmt.Errorf("give --share, 1 to %d, or --remove", wire.MaxShare)
		case !remove && (share < 1 || share > wire.MaxShare):
			return nil, fmt.Errorf("--share %d: give 1 to %d, or --remove", share, wire.MaxShare)
		}
		return []wire.Request{{Verb: wire.SetShare, Tenant: args[0], Share: share}}, nil
	})
	c.Flags().IntVar(&share, "share", 0, fmt.Sprintf(
		"the tenant's weight relative to other tenants, 1 to %d", wire.MaxShare))
	c.Flags().BoolVar(&remove, "remove", false, "remove the tenant's share")
	return c
}

// tenantsBefore are the tenants before a request that may change whether there are any.
func tenantsBefore(ctx context.Context, conn wire.Bus, q wire.Request) ([]wire.TenantState, error) {
	if q.Verb != wire.SetShare {
		return nil, nil
	}
	a, err := ask(ctx, conn, wire.Request{Verb: wire.Jobs})
	return a.Tenants, err
}

// shareIs says what a tenant has, and where that turns tenants on or off what it means for the others. A tenant without
// jobs may be a name that is misspelt.
func shareIs(q wire.Request, before, now []wire.TenantState) string {
	var b strings.Builder
	if q.Share == 0 {
		fmt.Fprintf(&b, "tenant %s has no share of its own\n", q.Tenant)
		if len(now) == 0 {
			fmt.Fprintln(&b, "nobody has a share any more: all jobs count by their priorities alone")
		}
		return b.String()
	}
	fmt.Fprintf(&b, "tenant %s has share %d", q.Tenant, q.Share)
	i := slices.IndexFunc(now, func(t wire.TenantState) bool { return t.Name == q.Tenant })
	if i >= 0 && now[i].Running+now[i].Waiting == 0 {
		b.WriteString(", and no jobs yet")
	}
	b.WriteString("\n")
	if len(before) == 0 {
		fmt.Fprintln(&b, "from now on every other user and the administrator count as tenants of share 1 each:",
			"tensile tenants lists those with jobs")
	}
	return b.String()
}

func tenantsCommand() *cobra.Command {
	var asJSON bool
	var client clientFlags
	c := &cobra.Command{
		Use:   "tenants",
		Short: "List the tenants of a controller with their shares and usage",
		Long: `List the tenants of a controller: users with a share and users with unfinished jobs. SPEED is the
measured speed of all jobs of a tenant; 1 is one job alone on a device. BEHIND is the time owed to the
tenant, in device time of iterations run alone, on the device where it is largest; a negative value means
that the tenant got more than its share. SERVED is the device time of all its iterations since the
controller started, run alone.`,
		Args: noArguments,
	}
	c.RunE = client.withController(func(ctx context.Context, conn *bus.Conn, _ []string, out io.Writer) error {
		a, err := ask(ctx, conn, wire.Request{Verb: wire.Jobs})
		switch {
		case err != nil:
			return err
		case asJSON && a.Tenants == nil:
			return printJSON(out, []wire.TenantState{})
		case asJSON:
			return printJSON(out, a.Tenants)
		}
		return writeTenants(out, a.Tenants)
	})
	client.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print a single JSON document")
	return c
}

// writeTenants prints a line for each tenant.
func writeTenants(out io.Writer, tenants []wire.TenantState) error {
	if len(tenants) == 0 {
		_, err := fmt.Fprintln(out, "nobody has a share: tensile tenants set NAME --share N gives one")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TENANT\tSHARE\tRUNNING\tWAITING\tSPEED\tBEHIND\tSERVED")
	for _, t := range tenants {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.2f\t%s\t%s\n", cmp.Or(t.Name, "-"), t.Share, t.Running, t.Waiting, t.Speed,
			text.Duration(t.Behind), text.Duration(t.Served))
	}
	return w.Flush()
}

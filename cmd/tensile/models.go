package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tensile/graph/cost"
	"tensile/models/workload"
	"tensile/observe/report"
)

func modelsCommand() *cobra.Command {
	var json bool
	var device string
	c := &cobra.Command{
		Use:   "models",
		Short: "List the networks: parameters, arithmetic, ops, memory without a plan",
		Long: fmt.Sprintf(
			`List every network at the size that it was made for. Parameters are the trained ones. GMACs are 1e9
multiply-adds of a forward pass of one example. Ops, tensors and memory are those of training with
Adam at batch %d without a plan: when nothing is freed within an iteration (all), and when everything
is freed after its last use (live). docs/models.md names the sources.

With --device also what an iteration without a plan takes there, by the roofline, and which share of
it is busy: work, and not launches of ops. Jobs of networks that are seldom busy gain most by running
together.`, workload.CatalogBatch),
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			var on *cost.Facts
			if device != "" {
				facts, err := simulatedFacts(device)
				if err != nil {
					return err
				}
				on = &facts
			}
			all, err := workload.Catalog(on)
			if err != nil {
				return err
			}
			if json {
				return printJSON(c.OutOrStdout(), all)
			}
			return report.WriteCatalog(c.OutOrStdout(), all)
		},
	}
	c.Flags().StringVar(&device, "device", "",
		"sim:NAME of a known device ("+simNames()+"): show times and busy shares there, too")
	complete(c, "device", simDevices()...)
	c.Flags().BoolVar(&json, "json", false, "print one JSON document and nothing else")
	return c
}

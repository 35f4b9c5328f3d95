package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/observe/report"
)

func modelsCommand() *cobra.Command {
	var json bool
	var device string
	c := &cobra.Command{
		Use:   "models",
		Short: "List the built-in networks with their sizes and memory needs",
		Long: fmt.Sprintf(
			`List every network at its original size. Parameters are the trained ones. GMACs are 1e9 multiply-adds in
a forward pass of one example. Ops, tensors and memory are for training with Adam at batch %d without a
plan: if nothing is freed during an iteration (all), and if every tensor is freed after its last use
(live). docs/models.md names the sources.

With --device, also show the roofline time of an iteration there without a plan, and utilization: the
share of it that is work and not op launches. Networks with low utilization gain most from running
together.`, task.CatalogBatch),
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
			all, err := task.Catalog(on)
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
		"sim:NAME of a known device ("+simNames()+"): also show predicted times and utilization")
	complete(c, "device", simDevices()...)
	c.Flags().BoolVar(&json, "json", false, "print a single JSON document")
	return c
}

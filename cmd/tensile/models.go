package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tensile/report"
	"tensile/workload"
)

func modelsCommand() *cobra.Command {
	var json bool
	c := &cobra.Command{
		Use:   "models",
		Short: "List the networks: parameters, arithmetic, ops, memory without a plan",
		Long: fmt.Sprintf(
			`List every network at the size that it was made for. Parameters are the trained ones. GMACs are 1e9
multiply-adds of a forward pass of one example. Ops, tensors and memory are those of training with
Adam at batch %d without a plan: when nothing is freed within an iteration (all), and when everything
is freed after its last use (live). docs/models.md names the sources.`, workload.CatalogBatch),
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := workload.Catalog()
			if err != nil {
				return err
			}
			if json {
				return printJSON(c.OutOrStdout(), all)
			}
			return report.WriteCatalog(c.OutOrStdout(), all)
		},
	}
	c.Flags().BoolVar(&json, "json", false, "print one JSON document and nothing else")
	return c
}

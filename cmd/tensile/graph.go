package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

func graphCommand() *cobra.Command {
	var f workloadFlags
	c := &cobra.Command{
		Use:   "graph MODEL | SCRIPT [-- ARGUMENTS]",
		Short: "Print the training graph of a network or script as JSON",
		Long: "Print the training graph of a network in the JSON format that run and plan read.\n\n" +
			modelHelp + "\n\n" + scriptHelp +
			" It\nruns until two of its iterations have done the same.",
		Args:              needModels,
		ValidArgsFunction: completeModels,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := scriptOf(c, args, func(flag string) bool { return !ofNetworks(flag) })
			if err != nil {
				return err
			}
			if s != nil {
				var recorded bytes.Buffer
				err := s.record(c.Context(), &recorded)
				if err == nil {
					_, err = recorded.WriteTo(c.OutOrStdout())
				}
				return err
			}
			return printGraph(args, &f, c.OutOrStdout())
		},
	}
	f.register(c)
	return c
}

func printGraph(names []string, f *workloadFlags, out io.Writer) error {
	w, err := f.load(names)
	if err != nil {
		return err
	}
	if len(w) != 1 {
		return fmt.Errorf("graph %s: one document holds one graph; name one model, without a number of copies",
			strings.Join(names, " "))
	}
	return printJSON(out, w[0].Graph)
}

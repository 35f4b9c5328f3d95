package main

import (
	"os"
	"slices"

	"github.com/spf13/cobra"
)

// output is the standard output. It remembers whether anything was written.
type output struct {
	file    *os.File
	written bool
}

func (o *output) Write(text []byte) (int, error) {
	o.written = true
	return o.file.Write(text)
}

// Fd is that of the file: a terminal is known by it.
func (o *output) Fd() uintptr { return o.file.Fd() }

// failed prints {"error": TEXT} in place of the document that --json asked for, unless a document was printed already.
func (o *output) failed(c *cobra.Command, text string) {
	f := c.Flags().Lookup("json")
	// Parsing ends at a wrong flag, perhaps before --json.
	if asked := f != nil && (f.Value.String() == "true" || slices.Contains(os.Args[1:], "--json")); asked &&
		!o.written {
		printJSON(o, map[string]string{"error": text}) // the exit status tells if that fails too
	}
}

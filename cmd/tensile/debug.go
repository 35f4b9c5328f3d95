package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tensile/controller"
	"tensile/executor/agent"
)

// replays have the machine of a process go through a recording, by the words with which recordings begin.
var replays = []struct {
	begin  string
	replay func(io.Reader) (steps int, err error)
}{
	{`{"machine":"controller"`, controller.Replay},
	{`{"machine":"agent"`, agent.Replay},
}

func debugCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "debug",
		Short: "Replay recordings of controllers and executors; check the results and speed of a GPU",
		Args:  noArguments,
	}
	c.AddCommand(&cobra.Command{
		Use:   "replay FILE...",
		Short: "Replay a recording and compare the outputs",
		Long: `Feed a recording made by tensile controller --record or tensile executor --record to the same state
machine again, and compare the outputs byte by byte. The recording must come from the same release.`,
		Example: "  tensile controller --record controller.jsonl\n  tensile debug replay controller.jsonl",
		Args:    cobra.ArbitraryArgs,
		RunE:    func(c *cobra.Command, args []string) error { return replayAll(args, c.OutOrStdout()) },
	})
	c.AddCommand(opsCommand(), ratesCommand())
	return c
}

func replayAll(files []string, out io.Writer) error {
	if len(files) == 0 {
		return errors.New("debug replay: name a FILE that --record wrote")
	}
	for _, file := range files {
		steps, err := replay(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d steps, every answer as it was recorded\n", file, steps)
	}
	return nil
}

func replay(file string) (steps int, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for _, r := range replays {
		if begin, _ := in.Peek(len(r.begin)); string(begin) == r.begin {
			if steps, err = r.replay(in); err != nil {
				err = fmt.Errorf("%s: %w", file, err)
			}
			return steps, err
		}
	}
	return 0, fmt.Errorf("%s: it is no recording; tensile controller --record FILE and tensile executor --record "+
		"FILE write some", file)
}

// recordTo opens the file that --record names. Nothing is written over.
func recordTo(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("--record %s: the file is there already: name another, or remove it", file)
	} else if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	return f, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tensile/wire/backup"
	"tensile/wire/bus"
)

func backupCommand() *cobra.Command {
	var state string
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the state of a running controller to a file",
		Long: `Back up everything that the controller of the state folder needs to resume to FILE, which is
overwritten if it exists: jobs with their graphs, plans and results, checkpoints of jobs that have not
ended, settings, and the secret from which all passwords derive. Keep FILE as safe as a password; its
mode is 0600. Logs are not included.`,
		Example: "  tensile controller backup /backups/tensile-monday.tar",
		Args:    needOne("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			return writeBackup(c.Context(), c.OutOrStdout(), state, args[0])
		},
	}
	registerState(c, &state)
	return c
}

func writeBackup(ctx context.Context, out io.Writer, state, name string) (err error) {
	f := clientFlags{state: state}
	credentials, err := f.read()
	if err != nil {
		return err
	}
	if credentials.External {
		return errors.New("the controller uses external NATS servers, which keep what it knows: back their streams up")
	}
	conn, err := bus.Connect(ctx, credentials, bus.ConnOptions{})
	if err != nil {
		return err
	}
	defer conn.Close()
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("write a backup: %w", err)
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
			err = fmt.Errorf("write a backup: %w", err)
		}
	}()
	damaged, err := backup.Write(ctx, file, state, conn)
	if err != nil {
		return err
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), name); err != nil {
		return err
	}
	for _, d := range damaged {
		fmt.Fprintf(out, "left out, as it is damaged: %v\n", d)
	}
	fmt.Fprintf(out, "%s: %d bytes, with the secret of the state folder: keep it as a password\n", name, size)
	return nil
}

func restoreCommand() *cobra.Command {
	var state string
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a state folder from a backup",
		Long: `Restore the state folder, which must be empty or not exist, from a FILE written by tensile controller
backup. A controller that is then started on it behaves as if it had been killed at the time of the
backup: its executors are gone, and jobs resume from their newest checkpoints. Stop the original
controller and its executors first: otherwise both would train the same jobs.`,
		Example: "  tensile controller restore /backups/tensile-monday.tar --state state\n" +
			"  tensile controller --state state",
		Args: needOne("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkState(state); err != nil {
				return err
			}
			file, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("restore: %w", err)
			}
			defer file.Close()
			if err := backup.Restore(c.Context(), file, state); err != nil {
				return fmt.Errorf("restore %s: %w", args[0], err)
			}
			fmt.Fprintf(c.OutOrStdout(), "state folder %s is restored: start tensile controller there\n", state)
			return nil
		},
	}
	registerState(c, &state)
	return c
}

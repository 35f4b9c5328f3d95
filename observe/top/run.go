package top

import (
	"context"
	"errors"
	"os"

	tea "charm.land/bubbletea/v2"
)

// ErrInterrupted is returned by Run when it was interrupted otherwise than by a key.
var ErrInterrupted = errors.New("interrupted")

// Run shows a model on a terminal, and takes keys from the standard input, until it is quit or ctx is done. The
// terminal is as before when it returns.
func Run(ctx context.Context, m Model, terminal *os.File) error {
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithOutput(terminal), tea.WithoutSignalHandler()).Run()
	if ctx.Err() != nil || errors.Is(err, tea.ErrInterrupted) {
		return ErrInterrupted
	}
	return err
}

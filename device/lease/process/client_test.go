package process

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestStartsInVain has a client say that the processes which it starts do not answer, and where to look: once in so
// many starts.
func TestStartsInVain(t *testing.T) {
	for name, start := range map[string]error{"it ends at once": nil, "there is none": errors.New("no such program")} {
		t.Run(name, func(t *testing.T) {
			lease := t.TempDir() // which nobody else has
			synctest.Test(t, func(t *testing.T) {
				starts, said := 0, 0
				c := client(t, Options{Name: lease, LogOf: "the log", Start: func() error { starts++; return start },
					Log: func(line string) {
						if strings.Contains(line, "does not answer") && strings.Contains(line, "the log") {
							said++
						}
					}})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := c.Run(ctx); err != nil {
					t.Fatal(err)
				}
				if starts < 2*inVain || said != starts/inVain {
					t.Errorf("%d starts, said %d times", starts, said)
				}
			})
		})
	}
}

package main

import (
	"errors"
	"fmt"
	"os"

	"tensile/models/external"
)

// writeScript writes the plan of a recorded graph as its script takes it.
func (s *session) writeScript(path string) error {
	if len(s.Tasks) != 1 || s.Tasks[0].Latency == nil {
		return errors.New("--script is for one recorded graph: give a SCRIPT, or the file that " +
			"tensile models graph SCRIPT has printed")
	}
	line, err := external.Encode(s.Script())
	if err != nil {
		return fmt.Errorf("--script: %w", err)
	}
	return os.WriteFile(path, line, 0o644)
}

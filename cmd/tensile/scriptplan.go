package main

import (
	"errors"
	"fmt"
	"os"

	"tensile/models/external"
	"tensile/peak"
)

// writeScript writes the plan of a recorded graph as its script takes it.
func (s *session) writeScript(path string) error {
	if len(s.workload) != 1 || s.workload[0].Latency == nil {
		return errors.New("--script is for one recorded graph: give a SCRIPT, or the file that " +
			"tensile models graph SCRIPT has printed")
	}
	t := s.workload[0]
	p := external.Compile(t.Graph, s.planned.Jobs[0].Plan)
	p.Number, p.Graph, p.Limit = 1, 1, s.budget
	p.Bytes = peak.Of(t.Graph, s.planned.Jobs[0].Plan).Peak + t.Held
	line, err := external.Encode(p)
	if err != nil {
		return fmt.Errorf("--script: %w", err)
	}
	return os.WriteFile(path, line, 0o644)
}

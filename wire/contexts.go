package wire

import (
	"fmt"

	"tensile/graph"
)

// Contexts are what processes take of a device's memory by opening it. The zero value says that they take nothing.
type Contexts struct {
	// Processes is how many processes have the device open.
	Processes int `json:"processes" bound:"count"`
	// Each is what one of them takes, in bytes.
	Each graph.Bytes `json:"each_bytes" bound:"storage"`
}

// Sum is what all of them take.
func (c Contexts) Sum() graph.Bytes { return graph.Bytes(c.Processes) * c.Each }

// String is "3 contexts of 256MiB each".
func (c Contexts) String() string {
	if c.Processes == 1 {
		return fmt.Sprintf("1 context of %s", c.Each)
	}
	return fmt.Sprintf("%d contexts of %s each", c.Processes, c.Each)
}

// Suffix is what a message about a budget says of contexts. "": there are none.
func (c Contexts) Suffix() string {
	if c.Sum() == 0 {
		return ""
	}
	return fmt.Sprintf(", with %s", c)
}

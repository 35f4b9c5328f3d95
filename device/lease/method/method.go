// Package method is the table of a lease's methods: rivals of what the lease does by itself, which is to grant all
// that its rule allows at once.
package method

import (
	"tensile/device/lease"
	"tensile/device/lease/waterwave"
	"tensile/device/lease/zico"
)

// New returns a new method by its word, nil if there is none. The words pairs and shift are aliases.
func New(word string) lease.Method {
	switch word {
	case "waterwave", "pairs":
		return waterwave.New(waterwave.Options{})
	case "zico", "shift":
		return zico.New()
	}
	return nil
}

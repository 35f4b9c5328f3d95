// Package method is the table of a lease's methods: rivals of what the lease does by itself, which is to grant all
// that its rule allows at once.
package method

import (
	"tensile/device/lease"
	"tensile/device/lease/pairs"
	"tensile/device/lease/shift"
)

// Of returns a new method by its word, nil if there is none.
func Of(word string) lease.Method {
	switch word {
	case "pairs":
		return pairs.New(pairs.Options{})
	case "shift":
		return shift.New()
	}
	return nil
}

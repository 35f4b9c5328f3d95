// Package method is the table of a lease's methods: rivals of what the lease does by itself, which is to grant all
// that its rule allows at once.
package method

import (
	"tensile/lease"
	"tensile/lease/pairs"
	"tensile/lease/shift"
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

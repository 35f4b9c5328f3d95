// Package invariants switches costly self-checks: they run in binaries built with the tag invariants, as make race
// does.
package invariants

package models

import (
	"fmt"
	"strconv"
	"strings"
)

// family is the networks of one form and any size, which numbers after a name choose.
type family struct {
	name  string
	sizes []string // what the numbers are
	model func(n []int) (model, error)
}

// families holds those that read sequences.
var families = []family{
	{"bert", []string{"layers", "width", "heads"}, func(n []int) (model, error) {
		return bert(n[0], n[1], n[2]), divides(n[1], n[2])
	}},
	{"gpt", []string{"layers", "width", "heads"}, func(n []int) (model, error) {
		return gpt(n[0], n[1], n[2]), divides(n[1], n[2])
	}},
	{"gnmt", []string{"layers", "width"}, func(n []int) (model, error) {
		return gnmt(n[0], n[1]), checkRange("layers", n[0], 2, mostSize)
	}},
	{"rhn", []string{"depth", "width"}, func(n []int) (model, error) { return rhn(n[0], n[1]), nil }},
	{"tacotron", []string{"convs", "width"}, func(n []int) (model, error) {
		return tacotron(n[0], n[1]), divides(n[1], 16)
	}},
}

// mostSize bounds each number, so that every product of extents is within 64 bits.
const mostSize = 1 << 16

// Families returns the forms of the names of networks of any size.
func Families() []string {
	forms := []string{anyResNet}
	for _, f := range families {
		forms = append(forms, f.form())
	}
	return forms
}

func (f family) form() string { return f.name + ":" + strings.Join(f.sizes, ",") }

// findFamily returns the network whose name has the form of a family; ok is false for other names.
func findFamily(name string) (m model, ok bool, err error) {
	for _, f := range families {
		if numbers, ok := strings.CutPrefix(name, f.name+":"); ok {
			if m, err = f.parse(numbers); err != nil {
				err = fmt.Errorf("model %s: %w", name, err)
			}
			return m, true, err
		}
	}
	return model{}, false, nil
}

func (f family) parse(numbers string) (model, error) {
	fields := strings.Split(numbers, ",")
	if len(fields) != len(f.sizes) {
		return model{}, fmt.Errorf("want the form %s", f.form())
	}
	n := make([]int, len(fields))
	for i, field := range fields {
		v, err := strconv.Atoi(field)
		if err != nil || v < 1 || v > mostSize {
			return model{}, fmt.Errorf("%s %q must be a number from 1 to %d", f.sizes[i], field, mostSize)
		}
		n[i] = v
	}
	return f.model(n)
}

func divides(width, by int) error {
	if width%by != 0 {
		return fmt.Errorf("width %d must be a multiple of %d", width, by)
	}
	return nil
}

package wire

import (
	"fmt"
	"reflect"
	"strings"

	"tensile/graph"
	"tensile/scheduler"
)

// Every number of a message has a bound, so that whoever reads it may calculate with it: the field's tag says it,
// a word of this table, or "any" for bits with which nobody calculates. A tag of a struct, pointer, list or map is for
// all numbers in it that have none of their own.
var bounds = map[string]bound{
	"count":   {0, 1 << 53},
	"bytes":   {0, float64(graph.MaxTotal)},
	"storage": {0, float64(graph.MaxBytes)},
	"span":    {0, 1 << 56},        // of time: two years
	"sum":     {0, 1 << 62},        // of some of these, and times since the Unix epoch
	"signed":  {-1 << 60, 1 << 60}, // a difference, and what is shown to people alone
	"step":    {-1, 1 << 53},       // -1: before the first
	"rate":    {0, 1 << 60},        // a second
	"ratio":   {0, 1 << 53},
	"part":    {0, 1},
	"latency": {0, float64(MaxLatency)},
	"took":    {0, float64(MaxTook)},
	"weight":  {0, scheduler.MaxWeight},
	"share":   {0, MaxShare},
}

// bound is what a number may be. The limits are exact: those of whole numbers are powers of two, or small.
type bound struct{ low, high float64 }

// violation says how a number is out of its bound; "" if it is not.
func (b bound) violation(v reflect.Value) string {
	switch {
	case v.CanInt():
		if n := v.Int(); n < int64(b.low) {
			return fmt.Sprintf("is %d, and cannot be less than %d", n, int64(b.low))
		} else if n > int64(b.high) {
			return fmt.Sprintf("is %d, and cannot be more than %d", n, int64(b.high))
		}
	case v.CanUint():
		if n := v.Uint(); n > uint64(b.high) {
			return fmt.Sprintf("is %d, and cannot be more than %d", n, int64(b.high))
		}
	default:
		if f := v.Float(); !(f >= b.low) { // NaN too
			return fmt.Sprintf("is %v, and cannot be less than %v", f, b.low)
		} else if f > b.high {
			return fmt.Sprintf("is %v, and cannot be more than %v", f, b.high)
		}
	}
	return ""
}

// walker finds the first number in a value that is out of its bound: what is wrong with it, by its place; "" if there
// is none. Nil: there are no numbers.
type walker func(reflect.Value) string

// walkerOf makes the walker of a type whose numbers have a bound, "" if they have to say it themselves. It adds the
// places of those that have none.
func walkerOf(t reflect.Type, word, place string, without *[]string) walker {
	switch t.Kind() {
	case reflect.Bool, reflect.String:
		return nil
	case reflect.Struct:
		return fieldsOf(t, word, place, without)
	case reflect.Pointer:
		of := walkerOf(t.Elem(), word, place, without)
		return of.orNil(func(v reflect.Value) string {
			if v.IsNil() {
				return ""
			}
			return of(v.Elem())
		})
	case reflect.Slice:
		of := walkerOf(t.Elem(), word, place, without)
		return of.orNil(func(v reflect.Value) string {
			for i := range v.Len() {
				if wrong := of(v.Index(i)); wrong != "" {
					return wrong
				}
			}
			return ""
		})
	case reflect.Map:
		key, of := walkerOf(t.Key(), word, place, without), walkerOf(t.Elem(), word, place, without)
		if key == nil && of == nil {
			return nil
		}
		return func(v reflect.Value) string {
			for each := v.MapRange(); each.Next(); {
				if wrong := key.check(each.Key()) + of.check(each.Value()); wrong != "" {
					return wrong
				}
			}
			return ""
		}
	}
	if word == "any" {
		return nil
	}
	b, ok := bounds[word]
	if zero := reflect.Zero(t); !ok || !zero.CanInt() && !zero.CanUint() && !zero.CanFloat() {
		*without = append(*without, place)
	}
	return b.violation
}

// check says what is wrong with a value; "" if nothing is.
func (w walker) check(v reflect.Value) string {
	if w == nil {
		return ""
	}
	return w(v)
}

// orNil returns another walker, or nil if w is nil, which means that there are no numbers.
func (w walker) orNil(other walker) walker {
	if w == nil {
		return nil
	}
	return other
}

func fieldsOf(t reflect.Type, word, place string, without *[]string) walker {
	type part struct {
		field int
		name  string
		of    walker
	}
	var parts []part
	for i := range t.NumField() {
		f := t.Field(i)
		own, name := word, f.Name
		if tag, ok := f.Tag.Lookup("bound"); ok {
			own = tag
		}
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" {
			name = tag
		}
		if f.Anonymous {
			name = ""
		}
		if of := walkerOf(f.Type, own, place+"."+f.Name, without); of != nil {
			parts = append(parts, part{i, name, of})
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return func(v reflect.Value) string {
		for _, p := range parts {
			if wrong := p.of(v.Field(p.field)); wrong != "" {
				return strings.TrimPrefix(p.name+" "+wrong, " ")
			}
		}
		return ""
	}
}

// walkers are those of all kinds of messages.
var walkers = func() map[string]walker {
	all := make(map[string]walker)
	for kind, of := range messages {
		var without []string
		if all[kind] = walkerOf(of, "", of.Name(), &without); len(without) > 0 {
			panic(fmt.Sprintf("wire: give these fields a bound: %s", strings.Join(without, ", ")))
		}
	}
	return all
}()

// Check returns what is wrong with a message, for which Encode would panic: a number out of its bound, or what its kind
// says of itself. It is for what people have typed.
func Check(m Message) error {
	if wrong := walkers[m.kind()].check(reflect.ValueOf(m)); wrong != "" {
		return fmt.Errorf("%s", wrong)
	}
	return m.check()
}

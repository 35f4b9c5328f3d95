package trace

import (
	"errors"
	"testing"
)

// What may come before what repeats, and after it. A pass is six events here.
func TestWhatIsAround(t *testing.T) {
	strangers := func(n int) func(*job) {
		return func(j *job) {
			for i := range n {
				j.scratch(5000 + int64(i))
			}
		}
	}
	stays := func(n int) func(*job) {
		return func(j *job) {
			for i := range n {
				j.malloc(4000 + int64(i))
			}
		}
	}
	pass := func(extra int) func(*job) {
		return func(j *job) {
			a := j.malloc(100)
			strangers(extra)(j)
			j.scratch(10, 20)
			j.free(a)
		}
	}
	frees := func(j *job) { j.free("b1", "b2", "b3", "b4") }
	all := func(parts ...func(*job)) []func(*job) { return parts }
	for _, c := range []struct {
		name          string
		before, after []func(*job)
		found         bool
	}{
		{"nothing", nil, nil, true},
		{"strangers", all(strangers(3)), nil, false},
		{"more of them than repeats", all(strangers(15)), nil, false},
		{"as many blocks that stay", all(strangers(2), stays(2)), nil, true},
		{"fewer", all(strangers(3), stays(2)), nil, false},
		{"as many mallocs of passes", all(pass(1), pass(2)), nil, true},
		{"a warm-up that does more", all(pass(20)), nil, true},
		{"no part of what repeats in a warm-up", all(strangers(21)), nil, false},
		{"a warm-up of eight passes", all(pass(21)), nil, true},
		{"a longer one", all(pass(22)), nil, false},
		{"frees", all(stays(4)), all(frees), true},
		{"strangers after it", nil, all(strangers(1)), false},
		{"another pass", nil, all(strangers(3), pass(0)), true},
		{"a pass of more than twice its length", nil, all(strangers(4), pass(0)), false},
		{"strangers and frees", all(stays(4)), all(strangers(1), frees), false},
	} {
		j := &job{}
		parts := append(append(c.before, pass(0), pass(0), pass(0)), c.after...)
		for _, part := range parts {
			part(j)
		}
		it, err := Find(j.t, 0)
		if part, doubted := errors.AsType[*PartError](err); (err == nil) != c.found || doubted == c.found ||
			c.found && (it.Events != 6 || it.Repeats < 2) {
			t.Errorf("%s: %+v, %v, %v, want an iteration: %v", c.name, it, part, err, c.found)
		}
		checkAnswer(t, c.name, &Record{Trace: j.t})
	}
}

// A record that begins in the middle of a pass has the blocks from before in another order than the pass has them.
func TestBeginsWithin(t *testing.T) {
	for _, c := range []struct {
		name   string
		before []int64 // in the order of the record
		frees  []int
		found  bool
	}{
		{"in the middle", []int64{8, 7, 6, 5, 4, 3, 2, 1}, []int{0, 1, 2, 3, 4, 5, 6, 7}, true},
		{"later", []int64{7, 6, 5, 4, 3, 2, 1}, []int{0, 1, 2, 3, 4, 5, 6}, true},
		{"with others that stay", []int64{9, 7, 6, 5, 10, 4, 3, 2, 1}, []int{1, 2, 3, 5, 6, 7, 8}, true},
		{"what is freed in another order", []int64{8, 7, 6, 5, 4, 3, 2, 1}, []int{0, 1, 2, 3, 4, 5, 7, 6}, false},
		{"what is of other sizes", []int64{80, 70, 60, 50, 40, 30, 20, 10}, []int{0, 1, 2, 3, 4, 5, 6, 7}, false},
	} {
		j := &job{}
		var held []string
		for _, size := range c.before {
			held = append(held, j.malloc(size))
		}
		for _, i := range c.frees {
			j.free(held[i])
		}
		for range 3 {
			var ids []string
			for size := range int64(8) {
				ids = append(ids, j.malloc(size+1))
			}
			for i := range ids {
				j.free(ids[7-i])
			}
		}
		if it, err := Find(j.t, 0); (err == nil) != c.found || c.found && (it.Events != 16 || it.Repeats < 2) {
			t.Errorf("%s: %+v, %v, want an iteration: %v", c.name, it, err, c.found)
		}
		checkAnswer(t, c.name, &Record{Trace: j.t})
	}
}

package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func self(j Job) Job { return j }

// A job of lower priority overtakes one that came later than their ranks differ; tenants take turns by their shares,
// and who has fewer jobs comes first.
func TestSort(t *testing.T) {
	l := &Line{Now: time.Hour, Aging: time.Minute}
	job := func(tenant string, priority int, waits time.Duration) Job {
		return Job{Tenant: tenant, Priority: priority, Since: l.Now - waits}
	}
	jobs := []Job{job("a", 1, 0), job("a", 2, time.Minute), job("b", 1, 3*time.Minute), job("b", 1, 0),
		job("c", 1, 0)}
	for _, c := range []struct {
		shares Shares
		active map[string]int
		want   []int
	}{
		{want: []int{2, 1, 0, 3, 4}},
		{shares: Shares{"a": 1}, want: []int{2, 1, 4, 0, 3}},
		{shares: Shares{"a": 1}, active: map[string]int{"b": 2}, want: []int{1, 4, 0, 2, 3}},
		{shares: Shares{"b": 4}, want: []int{2, 3, 1, 4, 0}},
	} {
		l.Shares, l.Active = c.shares, c.active
		order := []int{0, 1, 2, 3, 4}
		if Sort(l, order, func(i int) Job { return jobs[i] }); !slices.Equal(order, c.want) {
			t.Errorf("shares %v, active %v: %v, want %v", c.shares, c.active, order, c.want)
		}
	}
}

// Of the jobs of a tenant that gave way the first comes back, with its peers, and the others later.
func TestOneBack(t *testing.T) {
	jobs := []Job{{Tenant: "a", GaveWay: true, Gang: 7}, {Tenant: "a", GaveWay: true}, {Tenant: "b", GaveWay: true},
		{Tenant: "a"}, {Tenant: "a", GaveWay: true, Gang: 7}, {Tenant: "b", GaveWay: true}}
	want := []Job{jobs[0], jobs[2], jobs[3], jobs[4]}
	if got := OneBack(slices.Clone(jobs), self); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The last of the lowest priority gives way.
func TestVictim(t *testing.T) {
	for want, priorities := range map[int][]int{-1: nil, 0: {3}, 2: {2, 1, 1, 2}} {
		if got := Victim(priorities); got != want {
			t.Errorf("of %v number %d gives way, want %d", fmt.Sprint(priorities), got, want)
		}
	}
}

package controller

import (
	"fmt"

	"tensile/scheduler"
)

// fasterTogether is from what speeds of all jobs together on, as shares of their speeds alone, they are said to train
// together: below it they do no more than in turns.
const fasterTogether = 1.02

// expected says how a job is to train beside the others that share memory by gates; "": it is alone, or nothing is
// expected.
func (d *domain) expected(j *job) string {
	var others int
	sum := j.record.Speed
	for _, o := range d.active() {
		if o != j && o.record.Speed > 0 {
			others, sum = others+1, sum+o.record.Speed
		}
	}
	if others == 0 || j.record.Speed == 0 {
		return ""
	}
	beside := "another job"
	if others > 1 {
		beside = fmt.Sprintf("%d others", others)
	}
	return fmt.Sprintf("%s with %s, at %.2f of its speed alone", how(sum), beside, j.record.Speed)
}

// how says in a word how jobs train whose speeds have this sum.
func how(sum float64) string {
	if sum < fasterTogether {
		return "alternating"
	}
	return "together"
}

// sayShared says how fast the jobs are expected to be that share memory by gates.
func (d *domain) sayShared() {
	var words []string
	var sum float64
	for _, j := range d.active() {
		if j.record.Speed > 0 {
			words = append(words, fmt.Sprintf("job %s %.2f", j.record.Spec.Name, j.record.Speed))
			sum += j.record.Speed
		}
	}
	if len(words) < 2 {
		return
	}
	d.m.event(Event{Kind: Shared, Reason: fmt.Sprintf("%d jobs train %s; of their speeds alone are expected: %s",
		len(words), how(sum), scheduler.Abridge(words))})
}

// then is what is to be said of how a job is to train beside the others.
func (d *domain) then(j *job) string {
	if beside := d.expected(j); beside != "" {
		return "; it is expected to train " + beside
	}
	return ""
}

// starting says what a job waits for that may begin.
func (d *domain) starting(j *job) string {
	then := d.then(j)
	if j.there && then != "" {
		return "its executor gets it ready, or waits until others have given back memory" + then
	}
	return "its executor starts" + then
}

package controller

import (
	"fmt"

	"tensile/scheduler"
)

// fasterTogether is the sum of the speeds of all jobs, as shares of their speeds alone, from which on they are said to
// train together. Below it they do no more than in turns.
const fasterTogether = 1.02

// describeSpeed says how a job is expected to train beside the others that share memory by gates. "": it is alone, or
// nothing is expected.
func (d *domain) describeSpeed(j *job) string {
	var others int
	sum := j.record.Speed
	for _, o := range d.activeJobs() {
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
	return fmt.Sprintf("%s with %s, at %.2f of its speed alone", sharingWord(sum), beside, j.record.Speed)
}

// sharingWord says in a word how jobs train whose speeds have this sum.
func sharingWord(sum float64) string {
	if sum < fasterTogether {
		return "alternating"
	}
	return "together"
}

// announceSpeeds emits an event with the expected speeds of the jobs that share memory by gates.
func (d *domain) announceSpeeds() {
	var words []string
	var sum float64
	for _, j := range d.activeJobs() {
		if j.record.Speed > 0 {
			words = append(words, fmt.Sprintf("job %s %.2f", j.record.Spec.Name, j.record.Speed))
			sum += j.record.Speed
		}
	}
	if len(words) < 2 {
		return
	}
	d.m.emitEvent(Event{Kind: Shared, Reason: fmt.Sprintf("%d jobs train %s; of their speeds alone are expected: %s",
		len(words), sharingWord(sum), scheduler.Abridge(words))})
}

// speedSuffix ends a message about a job with how it is expected to train beside the others. "": nothing is expected.
func (d *domain) speedSuffix(j *job) string {
	if beside := d.describeSpeed(j); beside != "" {
		return "; it is expected to train " + beside
	}
	return ""
}

// describeStart says what a job waits for that may begin.
func (d *domain) describeStart(j *job) string {
	then := d.speedSuffix(j)
	if j.prepared && then != "" {
		return "its executor gets it ready, or waits until others have given back memory" + then
	}
	return "its executor starts" + then
}

package report

import (
	"cmp"
	"fmt"
	"time"

	"tensile/controller/memory"
	"tensile/graph"
	"tensile/graph/text"
	"tensile/wire"
)

// ExpectedSpeed returns the speed that is expected of a job beside the others.
func ExpectedSpeed(r *wire.Record) string {
	if r.Speed == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", r.Speed)
}

// Slowdown is how many times as long an iteration of a job takes as alone, as measured.
func Slowdown(r *wire.Record) string {
	if r.Measured == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", r.Measured)
}

// Sharing is how many jobs there are that share memory.
func Sharing(jobs []wire.Record) (n int) {
	for i := range jobs {
		if jobs[i].Sharing != wire.NoSharing && !jobs[i].State.Over() {
			n++
		}
	}
	return n
}

// UsedBudget returns how much of a budget is taken, and the sum of the parts: those of jobs, of processes that have the
// device open, and of executors out of reach. Where jobs share memory the sum is the larger.
func UsedBudget(a *wire.Answer) (taken, parts graph.Bytes) {
	taken, _ = memory.Used(a)
	parts = a.Contexts.Sum()
	for i := range a.Jobs {
		for _, h := range a.Jobs[i].Held {
			parts += h.Bytes
		}
		parts += memory.ClaimOf(&a.Jobs[i]).Arena
	}
	return taken, parts
}

// BudgetLine returns a line with what the jobs have of the budget and how many they are.
func BudgetLine(a wire.Answer) string {
	var held, need graph.Bytes
	used, host := memory.Used(&a)
	running, waiting, parked := 0, 0, 0
	for _, r := range a.Jobs {
		for _, h := range r.Held {
			held += h.Bytes
		}
		switch {
		case r.State == wire.JobParked:
			parked++
		case r.State == wire.JobQueued:
			waiting++
			need = cmp.Or(need, r.Wait.DeviceBytes())
		case !r.State.Over():
			running++
		}
	}
	line := used.String()
	if budget, _ := Budgets(memory.Devices(&a)); budget > 0 {
		line += " of " + budget.String()
	}
	line += " used"
	if a.Contexts.Sum() > 0 {
		line += fmt.Sprintf(" with %s", a.Contexts)
	}
	line += fmt.Sprintf(", %d running, %d waiting", running, waiting)
	if need > 0 {
		line += " for " + need.String()
	}
	if parked > 0 {
		line += fmt.Sprintf(", %d parked", parked)
	}
	if held > 0 {
		line += fmt.Sprintf("; executors that cannot be reached may have %s of it", held)
	}
	if a.HostMemory > 0 {
		line += fmt.Sprintf("; %s of %s of host memory", host, a.HostMemory)
	}
	if a.Trouble != "" {
		line += "; the controller is in trouble: " + a.Trouble
	}
	if a.Sharing != wire.NoSharing && Sharing(a.Jobs) > 1 {
		line += fmt.Sprintf("; jobs share memory by %s", a.Sharing)
	}
	switch {
	case len(a.Devices) > 1:
		return line + fmt.Sprintf("; %d devices", len(a.Devices))
	case len(a.Devices) == 1 && !a.Devices[0].Own:
		return line + "; device " + a.Devices[0].Name
	case a.Device == "" && len(a.Devices) == 0:
		return line + "; no device"
	}
	return line + link(a.Link) + "; device " + a.Device
}

// Budgets are those of all devices together; 0: one has no limit, or there is none.
func Budgets(devices []wire.DeviceState) (memory, host graph.Bytes) {
	limited, hostLimited := len(devices) > 0, len(devices) > 0
	for i := range devices {
		memory, limited = memory+devices[i].Budget, limited && devices[i].Budget > 0
		host, hostLimited = host+devices[i].HostMemory, hostLimited && devices[i].HostMemory > 0
	}
	if !limited {
		memory = 0
	}
	if !hostLimited {
		host = 0
	}
	return memory, host
}

// link says how fast copies are that all jobs share; nothing where they are as fast as the device makes them.
func link(r wire.Rates) string {
	switch {
	case r.Out <= 0 || r.In <= 0:
		return ""
	case r.Out == r.In:
		return fmt.Sprintf("; link %.3gGB/s each way", float64(r.Out)/1e9)
	}
	return fmt.Sprintf("; link %.3gGB/s out, %.3gGB/s in", float64(r.Out)/1e9, float64(r.In)/1e9)
}

// CheckpointedIterations is after how many iterations the newest checkpoint of a job was taken.
func CheckpointedIterations(r *wire.Record) string {
	if r.Checkpoint == nil {
		return "-"
	}
	return fmt.Sprint(r.Checkpoint.Iteration)
}

// ArenaInForce returns the arena of the plan with which a job trains now.
func ArenaInForce(r *wire.Record) graph.Bytes {
	if r.State.Over() {
		return 0
	}
	return r.Arena
}

// Rate is how many iterations of a job that runs are done in a second, and how long the rest will take.
func Rate(r *wire.Record) (rate, left string) {
	if r.Pace <= 0 || r.State != wire.JobRunning {
		return "-", "-"
	}
	rate = fmt.Sprintf("%.3g", 1/r.Pace.Seconds())
	if r.Pace < 10*time.Millisecond {
		rate = fmt.Sprintf("%.0f", 1/r.Pace.Seconds())
	}
	if r.Spec.Script {
		return rate, "-"
	}
	return rate, shortDuration(time.Duration(float64(r.Spec.Iterations-r.Iteration) * float64(r.Pace)))
}

// Reason returns why a job waits or has failed, and what is left of one that has failed.
func Reason(r *wire.Record) string {
	c := r.Checkpoint
	if r.State != wire.JobFailed || c == nil {
		return r.Reason
	}
	on, use := "", "--from goes on from it"
	if c.Host != "" {
		on = " on " + c.Host
	}
	if r.Diverged { // which it would again
		use = "--weights begins with its tensors"
	}
	const most = 400 // bytes: the rest is to be read, too
	return fmt.Sprintf("%s; its newest checkpoint, after %d iterations, is %s%s: %s", text.Line(r.Reason, most),
		c.Iteration, c.File, on, use)
}

// LastLoss is that of a job's last iteration that is known.
func LastLoss(r *wire.Record) string {
	loss := r.Loss
	if r.Result != nil && r.Result.Last != nil {
		loss = r.Result.Last
	}
	if loss == nil {
		return "-"
	}
	return fmt.Sprintf("%.4g", *loss)
}

// Age is the time since a job was submitted.
func Age(r *wire.Record, now time.Time) string {
	if r.Submitted == 0 { // by a controller that did not note it
		return "-"
	}
	return shortDuration(now.Sub(time.Unix(0, int64(r.Submitted))))
}

// shortDuration returns a duration in its two largest units: 7s, 3m12s, 2h5m, 4d11h.
func shortDuration(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(0, d)
	switch {
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

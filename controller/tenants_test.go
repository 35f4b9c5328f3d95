package controller

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/controller/fleet"
	"tensile/controller/queue"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// shop is a world with a device in virtual time: jobs that train there share it evenly, but for what each of them does
// beside (an op's launch), and what tenants get of it is counted.
type shop struct {
	*world
	rng    *rand.Rand
	busy   float64 // the part of each iteration in which a job uses the device
	graphs []*graph.Graph
	alone  map[graph.Digest]time.Duration
	part   map[int64]time.Duration  // of its iteration that a job has behind it, by ID
	since  map[int64]time.Duration  // when that began
	got    map[string]time.Duration // by tenant: what complete iterations take alone
	jobs   int
	sleeps string // a tenant whose jobs do nothing
}

const (
	shopTurn = 10 * time.Second
	shopStep = 500 * time.Millisecond
)

// newShop is one in which so many jobs fit without swapping; fit 0: all.
func newShop(t *testing.T, seed uint64, fit int) *shop {
	l := &shop{world: newWorld(t, seed, 0), rng: rand.New(rand.NewPCG(seed, 23)), part: map[int64]time.Duration{},
		since: map[int64]time.Duration{}, got: map[string]time.Duration{}, alone: map[graph.Digest]time.Duration{}}
	l.busy = 0.6 + 0.4*l.rng.Float64()
	w := l.world
	w.calm, w.late = true, false
	w.profile = func(g *graph.Graph) (planner.Profile, error) { // an iteration takes about a second
		p, err := profile(g)
		for op := range p.Latency {
			p.Latency[op] *= 2000
		}
		return p, err
	}
	var most graph.Bytes
	for range 3 {
		g := graphtest.New(l.rng, graphtest.Options{})
		p, _ := w.profile(g)
		for _, took := range p.Latency {
			l.alone[g.Digest()] += took
		}
		var sum graph.Bytes
		for _, s := range g.Storages {
			sum += s.Bytes + 64
		}
		most = max(most, sum)
		l.graphs = append(l.graphs, g)
	}
	w.config = Config{Device: "model", Align: 64, Out: w.config.Out, In: w.config.In, Policy: "tensile",
		OneExecutor: true,
		Turn:        shopTurn, NoReplan: true, KeepJobs: 5, Budget: most * graph.Bytes(fit)}
	w.budget, w.machine = w.config.Budget, NewMachine(w.config)
	w.clock = time.Hour
	return l
}

func (l *shop) share(tenant string, share int) {
	l.step(Input{Request: &wire.Request{Verb: wire.SetShare, Tenant: tenant, Share: share}})
}

// submit submits a job of a tenant.
func (l *shop) submit(tenant string, iterations int) {
	l.jobs++
	g := l.graphs[l.rng.IntN(len(l.graphs))]
	l.world.graphs[g.Digest()] = g
	l.step(Input{By: tenant, Submit: []Submission{{Spec: wire.Spec{Name: fmt.Sprintf("%s%d", tenant, l.jobs),
		Model: "random", Graph: g.Digest(), Iterations: iterations, Priority: 1 + l.rng.IntN(3),
		Checkpoint: wire.Interval{Iterations: 5}}, Graph: g}}})
}

// live are how many jobs of a tenant are not over.
func (l *shop) live(tenant string) (n int) {
	for _, r := range l.machine.Records() {
		if r.Spec.Owner == tenant && !r.State.Over() {
			n++
		}
	}
	return n
}

// pass lets a step of time pass.
func (l *shop) pass() {
	w := l.world
	w.clock += shopStep
	var training []*fakeJob
	for _, name := range slices.Sorted(maps.Keys(w.executors)) {
		for _, j := range w.executors[name].jobs {
			s := &j.status
			leaves := j.order.Stop || j.order.Park != "" || j.order.Epoch > s.Epoch ||
				s.Iteration == j.order.Spec.Iterations
			if s.State == wire.Running && (!leaves || l.part[s.ID] > 0) && j.order.Spec.Owner != l.sleeps {
				training = append(training, j)
			}
		}
	}
	stretch := max(1, l.busy*float64(len(training))+1-l.busy)
	for _, j := range training {
		l.train(j, time.Duration(float64(shopStep)/stretch))
	}
	for _, name := range slices.Sorted(maps.Keys(w.executors)) {
		x := w.executors[name]
		for _, j := range x.jobs {
			s := &j.status
			between := s.State != wire.Running || l.part[s.ID] == 0
			idle := s.State == wire.Running && !j.order.Stop && j.order.Park == "" && j.order.Epoch == s.Epoch &&
				s.Iteration < j.order.Spec.Iterations
			if between && !idle {
				rest := x.jobs
				x.jobs = []*fakeJob{j}
				w.work(x)
				x.jobs = rest
			}
		}
		w.tell(x)
	}
	for len(w.mail) > 0 {
		next := w.mail[0]
		w.mail = w.mail[1:]
		next()
	}
	w.step(Input{Tick: &Tick{}})
}

// train has a job train for so much of its time alone.
func (l *shop) train(j *fakeJob, does time.Duration) {
	s := &j.status
	if l.part[s.ID] == 0 {
		l.since[s.ID] = l.clock - shopStep
	}
	alone := l.alone[j.order.Spec.Graph]
	if l.part[s.ID] += does; l.part[s.ID] < alone {
		return
	}
	ends := j.order.Stop || j.order.Park != "" || j.order.Epoch > s.Epoch
	s.Iteration++
	l.part[s.ID] -= alone
	if ends || s.Iteration == j.order.Spec.Iterations {
		l.part[s.ID] = 0
	}
	l.got[j.order.Spec.Owner] += alone
	p, _ := l.profile(l.world.graphs[j.order.Spec.Graph])
	r := &wire.Report{Executor: l.executorOf(j), Job: s.Name, ID: s.ID, Incarnation: s.Incarnation, Epoch: s.Epoch,
		Iteration: s.Iteration - 1, Wall: l.clock - l.since[s.ID]}
	for _, step := range l.layout(s.Name, s.Epoch).Plan.Steps {
		r.Steps = append(r.Steps, p.Latency[step.Op])
	}
	l.since[s.ID] = l.clock
	l.send(func() { l.step(Input{Report: r}) })
}

func (l *shop) executorOf(j *fakeJob) string {
	for name, x := range l.executors {
		if slices.Contains(x.jobs, j) {
			return name
		}
	}
	return ""
}

// A tenant that always wants a device gets at least its share of it over a window of 120 turns, but for what six turns
// are worth: whoever else comes, with however many jobs, of whatever priority, however few fit, and where the
// controller is started again after every five turns as well, as it finds what it owed.
func TestTenantsGetTheirShares(t *testing.T) {
	parked := 0
	for seed := range long.Rounds(1, 6) {
		restart := time.Duration(0)
		if seed%3 == 2 {
			restart = 5 * shopTurn
		}
		parked += shopFor(t, seed, restart)
	}
	if parked < 3 {
		t.Errorf("%d jobs were parked", parked)
	}
}

// shopFor has a tenant want a device for 120 turns in which others come and go. The controller is started again after
// so much time; 0: never. It returns how many jobs were parked.
func shopFor(t *testing.T, seed uint64, restart time.Duration) (parked int) {
	const window, forgiven = 120 * shopTurn, 6 * shopTurn
	l := newShop(t, seed, int(seed%4)*2)
	shares := map[string]int{}
	for i := range 2 + l.rng.IntN(3) {
		shares[fmt.Sprint("tenant", i)] = 1 + l.rng.IntN(4)
	}
	names := slices.Sorted(maps.Keys(shares))
	always := names[0] // the others come and go
	for _, name := range names {
		l.share(name, shares[name])
	}
	keeps := 1 + l.rng.IntN(2) // jobs at a time
	var due, total time.Duration
	began := l.clock
	for end := l.clock + window; l.clock < end; {
		if restart > 0 && l.clock-began >= restart {
			began = l.clock
			l.restart()
		}
		for l.live(always) < keeps {
			l.submit(always, 5+l.rng.IntN(200))
		}
		for _, name := range names[1:] {
			if l.rng.IntN(100) == 0 && l.live(name) < 6 {
				for range 1 + l.rng.IntN(6) {
					l.submit(name, 1+l.rng.IntN(100))
				}
			}
		}
		sum := 0
		for _, name := range names {
			if l.live(name) > 0 {
				sum += shares[name]
			}
		}
		l.pass()
		due += shopStep * time.Duration(shares[always]) / time.Duration(sum)
	}
	for _, got := range l.got {
		total += got
	}
	due = time.Duration(float64(due) * min(1, float64(total)/float64(window)))
	for _, e := range l.events {
		if e.Kind == Preempted {
			parked++
		}
	}
	t.Logf("seed %d: %d fit, shares %v, busy %.2f: %s with %d jobs at a time got %v, is due %v; all got %v of %v",
		seed, seed%4*2, shares, l.busy, always, keeps, l.got[always], due, total, window)
	if l.got[always] < due-forgiven {
		t.Errorf("seed %d: %s got %v, and is due %v", seed, always, l.got[always], due)
	}
	if total < window*8/10 {
		t.Errorf("seed %d: the device did %v of %v", seed, total, window)
	}
	return parked
}

// A tenant whose jobs begin and do nothing, such as a script that sleeps, does not keep the device from the others.
func TestTenantsThatSleep(t *testing.T) {
	for seed := range long.Rounds(1, 3) {
		l := newShop(t, seed, 0)
		l.sleeps = "ada"
		for _, tenant := range []string{"ada", "bob"} {
			l.share(tenant, 1)
			l.submit(tenant, 1_000_000)
		}
		const window = 240 * shopTurn
		for end := l.clock + window; l.clock < end; {
			l.pass()
		}
		before := l.got["bob"]
		for end := l.clock + window; l.clock < end; {
			l.pass()
		}
		t.Logf("seed %d: bob got %v of the first %v, and %v later", seed, before, window, l.got["bob"]-before)
		if l.got["bob"]-before < window/3 {
			t.Errorf("seed %d: bob got %v in %v", seed, l.got["bob"]-before, window)
		}
	}
}

// A job that gives way to another tenant whose last job ends before the next tick is not forgotten.
func TestHeldForNobody(t *testing.T) {
	m := NewMachine(Config{Device: "model", Turn: shopTurn})
	m.shares = map[string]int{"ada": 1}
	m.now = time.Hour
	d := m.ownDomain
	d.ledger.LastTick = m.now - time.Second
	d.ledger.Accounts = map[string]*queue.Account{"bob": {Debt: 2 * shopTurn, InRepayment: true}}
	j := &job{domain: d, record: wire.Record{Spec: wire.Spec{Name: "a", Owner: "ada"}, Preempted: true,
		State: wire.JobParking}}
	m.jobs = []*job{j}
	m.enqueue(j, "gave way to another tenant")
	if d.requestDuePlans(); d.pending.admission || d.request != nil {
		t.Fatal("it is planned for at once")
	}
	if m.settleAccounts(); !d.pending.admission {
		t.Error("it is not planned for when nobody is owed anything")
	}
}

// What a tenant is owed stays while nobody can be paid: the device's executor was not heard of since the controller was
// started, or the tenant's job is at one that is out of reach. It is forgotten when the tenant wants nothing more.
func TestDebtsOutliveSilence(t *testing.T) {
	m := NewMachine(Config{Device: "none", NoDevice: true, Turn: shopTurn})
	m.shares, m.now = map[string]int{"ada": 1}, time.Hour
	d := m.openDevice(m.config.ForDevice(&wire.Device{Name: "a"}), &wire.Device{Name: "a"})
	x := &fleet.Executor{Name: "lab1", Device: "a"}
	m.executors["lab1"] = x
	j := &job{domain: d, record: wire.Record{Spec: wire.Spec{Name: "one", Owner: "ada"}}}
	m.jobs = []*job{j}
	const debt = 3 * shopTurn
	for _, c := range []struct {
		state    wire.JobState
		executor fleet.State
		keeps    bool
	}{
		{state: wire.JobQueued, executor: fleet.Awaited, keeps: true},
		{state: wire.JobUnknown, executor: fleet.Awaited, keeps: true},
		{state: wire.JobParked, executor: fleet.Awaited, keeps: true}, // until it is known whether it can be paid
		{state: wire.JobRunning, executor: fleet.Silent, keeps: true},
		{state: wire.JobUnknown, executor: fleet.Present, keeps: true},
		{state: wire.JobParked, executor: fleet.Present},
		{state: wire.JobFinished, executor: fleet.Present},
	} {
		x.State = c.executor
		if j.record.State, j.record.Executor = c.state, ""; c.state == wire.JobUnknown || c.state == wire.JobRunning {
			j.record.Executor = "lab1"
		}
		d.ledger = queue.Ledger{Turn: shopTurn, LastTick: m.now}
		d.ledger.Account("ada").Debt = debt
		m.now += time.Second
		d.settleAccounts()
		a := d.ledger.Accounts["ada"]
		if kept := a != nil && a.Debt == debt; kept != c.keeps || !kept && a != nil {
			t.Errorf("%+v: the account is %+v", c, a)
		}
	}
}

// resting returns a machine of a device on which a job of ada, who is owed much, lets others pass, and jobs of bob rest
// that gave way.
func resting(bobs int) (d *domain, ada *job, bob []*job) {
	m := NewMachine(Config{Device: "model", Turn: shopTurn, Context: 1, Watched: true})
	m.shares = map[string]int{"ada": 1}
	m.now = time.Hour
	d = m.ownDomain
	d.ledger.Accounts = map[string]*queue.Account{"ada": {Debt: 2 * shopTurn, InRepayment: true},
		"bob": {Debt: -shopTurn}}
	queued := func(name, owner string) *job {
		j := &job{domain: d, record: wire.Record{Spec: wire.Spec{Name: name, Owner: owner, Priority: 1,
			Checkpoint: wire.Interval{Iterations: 1}}, State: wire.JobQueued}}
		m.jobs = append(m.jobs, j)
		return j
	}
	ada = queued("a", "ada")
	ada.record.Wait, ada.found.overtakable = wire.Wait{For: wire.WaitMemory, Bytes: 1}, true
	for i := range bobs {
		j := queued(fmt.Sprint("b", i), "bob")
		j.record.Preempted, j.record.Executor = true, fmt.Sprint("x", i)
		m.executors[j.record.Executor] = &fleet.Executor{Name: j.record.Executor, State: fleet.Present,
			Kind: fleet.ForJobs}
		bob = append(bob, j)
	}
	return d, ada, bob
}

// A job that gave way and comes back a turn after another of its tenant says so, not that its tenant got too little.
func TestHeldForItsOwn(t *testing.T) {
	d, ada, bob := resting(2)
	d.ledger.LastTick = d.m.now
	d.ledger.Accounts = map[string]*queue.Account{"ada": {Debt: -time.Second}, "bob": {Debt: -shopTurn}}
	ada.found.overtakable, ada.record.State = false, wire.JobRunning
	bob[0].record.State, bob[0].record.Preempted, bob[0].trainingSince = wire.JobRunning, false, d.m.now
	d.m.settleAccounts()
	const want = "gave way to another tenant, and comes back a turn after the job of tenant bob that came back " +
		"before it"
	if got := bob[1].record.Reason; got != want {
		t.Errorf("it waits since it %q, want %q", got, want)
	}
}

// A job that is held for another tenant comes back when what it is held for lets others pass, and nothing trains.
func TestHeldForWhatPasses(t *testing.T) {
	d, ada, bob := resting(1)
	if got := d.waitingJobs(); !slices.Equal(got, bob) {
		t.Errorf("%d jobs wait, want that of bob", len(got))
	}
	ada.found.overtakable = false
	if got := d.waitingJobs(); len(got) != 1 || got[0] != ada {
		t.Errorf("%d jobs wait, want that of ada", len(got))
	}
	ada.found.overtakable, bob[0].record.State = true, wire.JobRunning
	d.m.jobs = append(d.m.jobs, &job{domain: d, record: wire.Record{Spec: wire.Spec{Name: "b1", Owner: "bob"},
		State: wire.JobQueued, Preempted: true}})
	d.pending.admission, bob[0].record.Preempted = false, false
	if got := d.waitingJobs(); len(got) != 0 {
		t.Errorf("%d jobs wait beside one that trains", len(got))
	}
	if d.repayDebt(); bob[0].record.Preempted {
		t.Error("a job gives way to one that passes")
	}
	ada.found.overtakable = false
	if d.repayDebt(); !bob[0].record.Preempted {
		t.Error("no job gives way")
	}
}

// Of jobs that rest one of the lowest priority leaves for another, and none that was resumed by its owner.
func TestUnload(t *testing.T) {
	d, ada, bob := resting(3)
	ada.found.overtakable, d.pending.admission = false, false
	for i, j := range bob {
		j.record.Spec.Priority, j.record.Granted = 3-i, 1
	}
	bob[2].record.Preempted = false
	bob[2].record.Wait = wire.Wait{For: wire.WaitRestart, Until: 2 * time.Hour}
	if d.unloadParked(); bob[0].record.Park != "" || bob[1].record.Park != wire.OnDisk || bob[2].record.Park != "" {
		t.Errorf("parked are %q, %q, %q", bob[0].record.Park, bob[1].record.Park, bob[2].record.Park)
	}
}

// Replicas let others pass together, and only others.
func TestReplicasPass(t *testing.T) {
	d, ada, bob := resting(1)
	bob[0].record.Preempted, bob[0].record.Spec.Checkpoint = false, wire.Interval{}
	of := func(number int) wire.Replica { return wire.Replica{Group: 1, Number: number, Of: 2} }
	replica := &job{domain: d, record: ada.record}
	ada.record.Spec.Replica, replica.record.Spec.Replica = of(0), of(1)
	d.m.jobs = append(d.m.jobs, replica)
	for _, others := range []bool{true, false} {
		ada.found.overtakable, replica.found.overtakable, d.pending.admission = false, false, false
		if !others {
			bob[0].record.State = wire.JobFinished
		}
		if d.unloadParked(); ada.found.overtakable != others || replica.found.overtakable != others {
			t.Errorf("with others %v: the replicas let them pass: %v, %v", others, ada.found.overtakable,
				replica.found.overtakable)
		}
	}
}

// paying returns a machine of a device where ada is owed much and waits, and where bob and cal have had more than their
// shares, bob most. One of bob's jobs has a higher priority than the others, the last has begun just now.
func paying() (d *domain, bob, cal []*job) {
	d, ada, _ := resting(0)
	ada.found.overtakable, d.pending.admission = false, false
	d.ledger.Accounts["cal"] = &queue.Account{Debt: -shopTurn / 2}
	trains := func(name, owner string, priority int, begun time.Duration) *job {
		j := &job{domain: d, trainingSince: begun, record: wire.Record{Spec: wire.Spec{Name: name, Owner: owner,
			Priority: priority}, State: wire.JobRunning}}
		d.m.jobs = append(d.m.jobs, j)
		return j
	}
	for i, priority := range []int{2, 1, 1} {
		bob = append(bob, trains(fmt.Sprint("b", i), "bob", priority, 0))
	}
	bob = append(bob, trains("b3", "bob", 1, d.m.now-shopTurn+1))
	return d, bob, []*job{trains("c", "cal", 1, 0)}
}

// gaveWay are the jobs of some that have been parked for others.
func gaveWay(jobs []*job) (names []string) {
	for _, j := range jobs {
		if j.record.Preempted {
			names = append(names, j.record.Spec.Name)
		}
	}
	return names
}

// A job is parked of the tenant that got most, of the lowest priority, the last that came of these, after a turn at
// least. Another one follows when the debt has not fallen for a part of a turn.
func TestRepay(t *testing.T) {
	d, bob, cal := paying()
	want := func(what string, names ...string) {
		t.Helper()
		d.pending.admission = false
		d.repayDebt()
		if got := gaveWay(append(bob, cal...)); !slices.Equal(got, names) {
			t.Errorf("%s: %v gave way, want %v", what, got, names)
		}
	}
	want("at first", "b2")
	want("at once after that", "b2")
	d.m.now += shopTurn / queue.Patience
	d.ledger.Accounts["ada"].Debt -= shopTurn / queue.Patience / 8
	bob[3].trainingSince = d.m.now
	want("while the debt falls", "b2")
	d.m.now += shopTurn / queue.Patience
	want("when it does not", "b1", "b2")
}

// The share of a tenant is divided among its jobs by their priorities; the largest weight is the largest that there is.
func TestWeights(t *testing.T) {
	d, bob, cal := paying()
	d.m.shares = map[string]int{"bob": 4, "cal": 2}
	weights := d.m.tenantWeights(d.activeJobs())
	for j, want := range map[*job]int{bob[0]: 400, bob[1]: 200, bob[2]: 200, bob[3]: 200, cal[0]: 500} {
		if weights[j] != want {
			t.Errorf("job %s has weight %d, want %d", j.record.Spec.Name, weights[j], want)
		}
	}
	waits := &job{record: wire.Record{Spec: wire.Spec{Owner: "cal", Priority: 3}, State: wire.JobQueued}}
	d.m.jobs = append(d.m.jobs, waits)
	// two of six shares, of which it has three quarters, for six jobs
	if got := d.m.jobWorth(waits)(waits); got != 1.5 {
		t.Errorf("a job that waits is worth %v beside the others", got)
	}
}

// Who has fewer jobs at the device comes first, whatever came first.
func TestFewerJobsComeFirst(t *testing.T) {
	d, _, _ := paying()
	wait := func(owner string) *job {
		return &job{domain: d, record: wire.Record{Spec: wire.Spec{Owner: owner}, State: wire.JobQueued}}
	}
	waiting := []*job{wait("bob"), wait("cal"), wait("ada")}
	d.m.sortQueue(waiting)
	for i, want := range []string{"ada", "cal", "bob"} {
		if got := waiting[i].tenant(); got != want {
			t.Errorf("number %d is of %s, want %s", i, got, want)
		}
	}
}

// What tenants get of a device on which nothing is known of what ops take is the time that passes, shared by the jobs
// that train. A debt is paid until nothing is owed, and nothing is due before the first tick.
func TestReckon(t *testing.T) {
	d, _, cal := paying()
	l := &d.ledger
	d.m.jobs = append(cal, &job{domain: d, record: wire.Record{Spec: wire.Spec{Owner: "bob"}, State: wire.JobRunning}})
	l.Accounts = map[string]*queue.Account{"bob": {Debt: shopTurn / 2, InRepayment: true}, "cal": {Debt: -shopTurn / 2}}
	for _, passed := range []time.Duration{0, time.Second, time.Second} {
		d.m.now += passed
		d.settleAccounts()
		if bob, cal := l.Accounts["bob"], l.Accounts["cal"]; !bob.InRepayment || bob.Debt != shopTurn/2 ||
			cal.InRepayment ||
			cal.Debt != -shopTurn/2 {
			t.Errorf("after %v more bob's account is %+v, that of cal %+v", passed, bob, cal)
		}
	}
}

// Debts that were stored count within their limits. People are told of the largest of a tenant, and of none when the
// last share is taken.
func TestStoredDebts(t *testing.T) {
	d, _, _ := paying()
	m := d.m
	other := m.openDevice(m.config.ForDevice(&wire.Device{Name: "a"}), &wire.Device{Name: "a"})
	d.ledger, other.ledger = queue.Ledger{Turn: shopTurn}, queue.Ledger{Turn: shopTurn}
	m.restoreDebts(&wire.Tenants{Debts: []wire.TenantDebt{{Device: d.recordName(), Tenant: "ada", Debt: 99 * shopTurn},
		{Device: "a", Tenant: "ada", Debt: shopTurn}, {Device: "a", Tenant: "bob", Debt: -99 * shopTurn}}})
	behind := func() map[string]time.Duration {
		all := make(map[string]time.Duration)
		for _, s := range m.Tenants() {
			all[s.Name] = s.Behind
		}
		return all
	}
	want := map[string]time.Duration{"ada": 10 * shopTurn, "bob": -shopTurn, "cal": 0}
	if got := behind(); !maps.Equal(got, want) {
		t.Errorf("behind are %v, want %v", got, want)
	}
	if err := m.setShare(&wire.Request{Tenant: "ada"}); err != nil {
		t.Fatal(err)
	}
	if len(behind()) > 0 || len(d.ledger.Accounts) > 0 || len(other.ledger.Accounts) > 0 {
		t.Errorf("without shares behind are %v: %v, %v", behind(), d.ledger.Accounts, other.ledger.Accounts)
	}
}

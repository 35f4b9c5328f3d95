package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"

	"tensile/graph"
	"tensile/models/external"
)

// fakeScript speaks to a sidecar as a script does that trains what a file says was recorded: fakescript FILE
// ITERATIONS HOW. Two iterations are recorded. HOW is one of
//
//	well      nothing happens
//	greedy    its allocator has 1.5 MiB more than planned
//	hasty     it ends with a plan that it has not read
//	wild      it says what is no message
//	wrong     it names a plan that there is not
//	passive   it follows no plan
//	killed    it kills itself
//	failing   it ends with status 3
//	stopped   it ends when it is told to
//	ends      it ends when there is no plan, and it is told to
//	orphan    it trains on when its sidecar is gone
//	job       it trains until it is told to end, by the newest plan and none at first, also when its sidecar is gone
func fakeScript() {
	if err := fake(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Println("fakescript:", err)
		os.Exit(1)
	}
	if os.Args[3] == "failing" {
		os.Exit(3)
	}
}

func fake(path, count, how string) error {
	iterations, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	text, err := os.Open(path)
	if err != nil {
		return err
	}
	defer text.Close()
	file, err := external.ReadFile(text)
	if err != nil {
		return err
	}
	conn, err := net.Dial("unix", os.Getenv("TENSILE_ADDRESS"))
	if err != nil {
		return err
	}
	file.Hello.PID = os.Getpid()
	if rank, err := strconv.Atoi(os.Getenv(rankVariable)); err == nil {
		file.Hello.Rank = &rank
	}
	f := &trainee{conn: conn, iterations: iterations, how: how}
	f.reader = external.NewReader(f.conn, external.Sidecar)
	return f.train(file)
}

type trainee struct {
	conn       net.Conn
	reader     *external.Reader
	iterations int
	how        string
	done       int
	plan       external.Plan
}

func (f *trainee) say(m external.Message) error {
	line, err := external.Encode(m)
	if err == nil {
		_, err = f.conn.Write(line)
	}
	return err
}

// next takes the next plan.
func (f *trainee) next() error {
	m, err := f.reader.Next()
	if err != nil {
		return err
	}
	p, ok := m.(external.Plan)
	if !ok {
		return fmt.Errorf("got %T, want a plan", m)
	}
	f.plan = p
	fmt.Printf("plan %d for graph %d\n", p.Number, p.Graph)
	return f.say(external.Applied{Plan: p.Number, Iteration: f.done})
}

// alone waits until the sidecar has closed its end. If it has not read all that was said, that is a reset.
func (f *trainee) alone() error {
	if m, err := f.reader.Next(); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("the sidecar goes on: %v, %v", m, err)
	}
	return nil
}

func (f *trainee) iterate(i external.Iteration) error {
	f.done++
	i.Iteration = f.done
	return f.say(i)
}

func (f *trainee) train(file *external.File) error {
	if err := f.say(file.Hello); err != nil {
		return err
	}
	var all graph.Bytes
	for _, s := range file.Recorded.Graph.Storages {
		all += s.Bytes
	}
	if f.how == "job" {
		return f.job(file, all)
	}
	if err := f.next(); err != nil {
		return err
	}
	for range 2 {
		if err := f.iterate(external.Iteration{Touched: all, Reserved: all}); err != nil {
			return err
		}
	}
	if f.how == "wild" {
		_, err := io.WriteString(f.conn, "{}\n")
		if err := f.alone(); err != nil {
			return err
		}
		return err
	}
	if err := f.say(file.Recorded); err != nil {
		return err
	}
	if f.how == "hasty" {
		if _, err := f.conn.Read(make([]byte, 1)); err != nil {
			return err
		}
		return f.say(external.End{Iteration: f.done})
	}
	if err := f.next(); err != nil {
		return err
	}
	switch f.how {
	case "killed":
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "wrong":
		if err := f.iterate(external.Iteration{Graph: 1, Plan: 9}); err != nil {
			return err
		}
		if err := f.alone(); err != nil {
			return err
		}
		return nil
	case "passive":
		if err := f.say(external.Passive{Iteration: f.done, Why: "compiled code", Always: true}); err != nil {
			return err
		}
		f.plan = external.Plan{}
	case "orphan":
		fmt.Println("training")
		if err := f.alone(); err != nil {
			return err
		}
		fmt.Println("trained on")
		return nil
	case "stopped":
		fmt.Println("training")
		if m, err := f.reader.Next(); err != nil || m != (external.Stop{}) {
			return fmt.Errorf("got %v and %v, want to be stopped", m, err)
		}
		return f.say(external.End{Iteration: f.done, Stopped: true})
	}
	if f.plan.Why != "" && f.how == "ends" {
		if m, err := f.reader.Next(); err != nil || m != (external.Stop{}) {
			return fmt.Errorf("got %v and %v, want to be stopped", m, err)
		}
		return f.say(external.End{Iteration: f.done, Stopped: true})
	}
	for followed := 1; f.done < f.iterations; followed++ {
		i := external.Iteration{Graph: f.plan.Graph, Touched: f.plan.Bytes, Reserved: f.plan.Bytes, Wall: 1000,
			Stall: 10}
		if i.Plan = f.plan.Number; f.plan.Graph == 0 {
			i.Plan = 0
		}
		if f.how == "greedy" {
			i.Reserved += 1536 << 10
		}
		if err := f.iterate(i); err != nil {
			return err
		}
		if f.how == "greedy" && followed == 2 {
			if err := f.next(); err != nil {
				return err
			}
		}
	}
	return f.say(external.End{Iteration: f.done})
}

// job trains until it is told to end. It says what it does, and ends when nobody hears that any more.
func (f *trainee) job(file *external.File, all graph.Bytes) error {
	fmt.Println("process", os.Getpid())
	messages := make(chan external.Message)
	go func() {
		defer close(messages)
		for {
			m, err := f.reader.Next()
			if err != nil {
				return
			}
			messages <- m
		}
	}()
	said := false
	for {
		select {
		case m, open := <-messages:
			if !open {
				messages = nil
				fmt.Println("alone")
				continue
			}
			if done, err := f.told(m, messages); done || err != nil {
				return err
			}
		default:
		}
		work := make([]byte, 1<<20)
		for range 4 {
			sha256.Sum256(work)
		}
		i := external.Iteration{Graph: f.plan.Graph, Touched: f.plan.Bytes, Reserved: f.plan.Bytes, Wall: 1000}
		if i.Graph == 0 {
			i.Touched, i.Reserved = all, all
		} else {
			i.Plan = f.plan.Number
		}
		if err := f.iterate(i); err != nil && messages != nil {
			continue // which will be closed
		}
		fmt.Printf("iteration %d by plan %d\n", f.done, i.Plan)
		if f.done >= 2 && !said {
			said = true
			if err := f.say(file.Recorded); err != nil {
				return err
			}
		}
	}
}

// told does what the sidecar says, and reports whether that is to end.
func (f *trainee) told(m external.Message, messages <-chan external.Message) (done bool, err error) {
	switch m := m.(type) {
	case external.Plan:
		if f.plan = m; m.Why != "" {
			fmt.Println("no plan:", m.Why)
		}
		return false, f.say(external.Applied{Plan: m.Number, Iteration: f.done})
	case external.Park:
		fmt.Println("rests")
		if err := f.say(external.Parked{Number: m.Number, Iteration: f.done}); err != nil {
			return false, err
		}
		for next := range messages {
			if _, plan := next.(external.Plan); !plan {
				if _, resumed := next.(external.Resume); resumed {
					fmt.Println("goes on")
					return false, f.say(external.Applied{Plan: f.plan.Number, Iteration: f.done})
				}
				return f.told(next, messages)
			}
			f.plan = next.(external.Plan)
		}
	case external.Stop:
		return true, f.say(external.End{Iteration: f.done, Stopped: true})
	}
	return false, nil
}

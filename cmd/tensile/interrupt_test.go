//go:build linux

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/wire"
)

// undisturbed trains lenet as the tests here do, for so many iterations, and returns the file that it saves.
func undisturbed(t *testing.T, seed int, iterations string) []byte {
	t.Helper()
	dir := t.TempDir()
	tensile(t, dir, "run", "lenet", "--batch", "2", "--image", "12", "--seed", fmt.Sprint(seed), "--iterations",
		iterations, "--save", "w.safetensors")
	return read(t, filepath.Join(dir, "w.safetensors"))
}

// A run that is interrupted saves what was asked for, and says where and at which iteration. The files are those of
// undisturbed runs of as many iterations, byte for byte.
func TestRunInterruptedSaves(t *testing.T) {
	long.Only(t)
	t.Parallel()
	p, _ := startRun(t, "--iterations", forever, "--budget", "70%", "--save", "w.safetensors")
	p.savesBoth()
}

// savesBoth interrupts a run of two jobs that is to save w.safetensors, and wants it to have saved them as undisturbed
// runs of as many iterations do.
func (p *family) savesBoth() {
	t := p.t
	t.Helper()
	p.signal(syscall.SIGINT)
	p.ends(130, "^tensile: interrupted: job ")
	p.vanishes()
	for seed, job := range []string{"lenet.1", "lenet.2"} {
		name := filepath.Join(p.dir, "w-"+job+".safetensors")
		said := regexp.MustCompile(`job ` + job + ` stopped after ([0-9]+) iterations, saved in ` +
			name).FindStringSubmatch(p.stderr.String())
		if said == nil {
			t.Fatalf("of %s it is said: %s", job, &p.stderr)
		}
		if !bytes.Equal(read(t, name), undisturbed(t, 1+seed, said[1])) {
			t.Errorf("what was saved of %s after %s iterations is not what an undisturbed run saves", job, said[1])
		}
	}
	if names := files(t, p.dir); len(names) != 2 {
		t.Errorf("%q were left behind", names)
	}
}

// A second signal ends a run at once, although an iteration goes on.
func TestSecondSignal(t *testing.T) {
	long.Only(t)
	t.Parallel()
	p := start(t, t.TempDir(), "run", "resnet18", "--image", "64", "--batch", "32", "--iterations", "100", "--save",
		"w.safetensors")
	p.line(` it/s `)
	for p.command.Process.Signal(syscall.SIGTERM) == nil { // an ended process that was not waited for is still there
		if _, ok := executors(t, p.dir)["x1"]; !ok {
			break
		}
	}
	p.ends(-1, "")
	p.nothing()
}

// An executor that gets a signal saves a job of which no checkpoints are taken, tells its controller, and ends.
func TestExecutorInterrupted(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"interrupt": syscall.SIGINT, "hang up": syscall.SIGHUP,
		"terminate": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, 2*graph.MiB)
			path := filepath.Join(c.files, "lab.json")
			c.tell("credentials", "lab", "--output", path)
			lab := start(t, c.files, "executor", "--credentials", path)
			lab.line(`^connected to nats://127\.0\.0\.1:[0-9]+, device cpu/`)
			lab.line(`^joined the controller as lab, waiting for jobs$`)
			c.line(`^executor lab has joined$`)
			saved := filepath.Join(c.files, "w.safetensors")
			c.tell("submit", "lenet", "--batch", "2", "--image", "12", "--iterations", forever, "--save",
				"w.safetensors", "--checkpoint", "none")
			lab.line(`^job lenet begun: 16777216 iterations of lenet$`)
			c.train(nil, "lenet")
			lab.signal(signal)
			rest := lab.ends(130, `^tensile: interrupted: job lenet ended after [0-9]+ iterations, saved in `+saved+`$`)
			r := c.in(wire.JobFailed, "lenet")
			if r.Reason != "its executor was interrupted, saved in "+saved || r.Result == nil ||
				len(r.Result.Losses) != r.Iteration || r.Result.Saved != saved || r.Executor != "lab" {
				t.Errorf("the job whose executor was interrupted: %+v", r)
			}
			if want := fmt.Sprintf("job lenet ended after %d iterations, saved in %s\n", r.Iteration,
				saved); !strings.HasSuffix(rest, want) {
				t.Errorf("the executor says %q, want %q at the end", rest, want)
			}
			if !bytes.Equal(read(t, saved), undisturbed(t, 1, fmt.Sprint(r.Iteration))) {
				t.Errorf("what was saved after %d iterations is not what an undisturbed run saves", r.Iteration)
			}
			c.end()
		})
	}
}

// An executor whose bits would be others is sent away, and says why: here, one on a processor without fused
// multiplications, which math.Exp uses.
func TestExecutorSentAway(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	path := filepath.Join(c.files, "lab.json")
	c.tell("credentials", "lab", "--output", path)
	lab := startWith(t, c.files, []string{"GODEBUG=cpu.fma=off"}, "executor", "--credentials", path)
	lab.line(`^connected to `)
	lab.ends(1, `^tensile: executor lab is sent away: its device is cpu/[^ ]+/kernels=[^ ]+, jobs here are `+
		`planned for cpu/[^ ]+/kernels=[^ ]+$`)
	c.line(`^executor lab is sent away: its device is cpu/.*/kernels=.*, jobs here are planned for cpu/.*/kernels=`)
	c.end()
}

// An executor that is stopped (SIGSTOP) lives on when its controller is killed: the kernel hangs up process groups that
// become orphans then, unless they have a session of their own.
func TestStoppedExecutorOutlivesController(t *testing.T) {
	long.Only(t)
	t.Parallel()
	first := startCluster(t, 2*graph.MiB)
	first.submit("lenet")
	before := first.train(nil, "lenet")
	pid := executors(t, first.dir)["x1"]
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	first.signal(syscall.SIGKILL)
	first.ends(-1, "")
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatalf("the executor has ended with its controller: %v", err)
	}
	c := first.restart()
	c.train(before, "lenet")
	c.tell("stop", "lenet")
	c.end()
}

// Who waits for a job and is interrupted leaves it alone; so does who watches.
func TestWaitInterrupted(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2*graph.MiB)
	waiting := start(t, c.files, "submit", "lenet", "--batch", "2", "--image", "12", "--iterations", forever, "--wait",
		"--state", c.state)
	waiting.line("^job lenet is ")
	waiting.signal(syscall.SIGINT)
	waiting.ends(130, "^tensile: interrupted: jobs go on; tensile job wait lenet waits for them again$")
	watching := start(t, c.files, "jobs", "--watch", "--state", c.state)
	watching.line("^lenet ")
	watching.signal(syscall.SIGINT)
	watching.ends(130, "")
	following := start(t, c.files, "logs", "-f", "lenet", "--state", c.state)
	following.line("^iteration ")
	following.signal(syscall.SIGINT)
	following.ends(130, "")
	c.train(nil, "lenet")
	c.tell("stop", "lenet")
	c.end()
}

// Data is read where a job is trained, when it begins: not where and when it is submitted.
func TestDataOfExecutor(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2*graph.MiB, "--policy", "none-live")
	c.submit("lenet")
	c.train(nil, "lenet")
	folder := filepath.Join(c.files, "digits")
	c.tell("submit", "lenet", "--batch", "8", "--iterations", "3", "--name", "later", "--data", "digits")
	if r := c.jobs()["later"]; r.State != wire.JobQueued || r.Spec.Data != folder {
		t.Fatalf("the job is not to begin yet: %+v", r)
	}
	if err := writeDigits(folder, 20, 28, 28); err != nil {
		t.Fatal(err)
	}
	c.tell("stop", "lenet")
	if r := c.in(wire.JobFinished, "later"); len(r.Result.Losses) != 3 {
		t.Errorf("the job on data that came after it: %+v", r)
	}
	c.end()
}

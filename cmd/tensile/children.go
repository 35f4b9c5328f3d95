package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"tensile/device/lifelock"
	"tensile/wire/bus"
)

// children are executor processes started from here.
type children struct {
	server hub
	dir    string   // State folder.
	flags  []string // Device flags of each executor.
	bound  bool     // they end when this process does, however it ends
	// profile is the file for the profile of the first that is started, whose name the others' begin with; "": none.
	profile  string
	profiled bool
	paced    bool // they train up to an iteration that they are told, and rest there
	until    int  // the last that they were told

	mu      sync.Mutex
	running map[string]*child
	done    sync.WaitGroup
}

type child struct {
	command *exec.Cmd
	stdin   io.WriteCloser // of one that is bound: it ends when this is closed
}

func newChildren(server hub, dir string, device *planFlags, bound bool) *children {
	flags := []string{"--device", device.device, "--link", device.link, "--threads", fmt.Sprint(device.threads)}
	if device.fake {
		flags = append(flags, "--fake")
	}
	flags = append(flags, "--checkpoints", filepath.Join(dir, checkpointsName), "--lease", leaseLogs(dir),
		"--users", filepath.Join(dir, usersName))
	return &children{server: server, dir: dir, flags: flags, bound: bound, running: make(map[string]*child)}
}

// launch starts an executor. ended is called once, when it has ended, with the reason and the lives of that name.
func (c *children) launch(name string, ended func(why string, lives []string)) error {
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program that executors are: %w", err)
	}
	folder := c.folder()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("start executor %s: %w", name, err)
	}
	credentials, log, problems := c.files(name)
	if err := bus.WriteCredentials(credentials, c.server.Credentials(bus.Executor(name))); err != nil {
		return fmt.Errorf("start executor %s: %w", name, err)
	}
	var outputs [2]*os.File // no pipes: it may outlive this process
	for i, path := range [...]string{log, problems} {
		if outputs[i], err = os.Create(path); err != nil {
			return fmt.Errorf("start executor %s: %w", name, err)
		}
		defer outputs[i].Close()
	}
	lock, err := lifelock.Take(folder, name)
	if err != nil {
		return fmt.Errorf("start executor %s: %w", name, err)
	}
	defer lock.Leave() // the executor holds it from its first moment on
	k := &child{command: exec.Command(binary, append([]string{"executor", "--credentials", credentials, "--locked"},
		c.flags...)...)}
	k.command.ExtraFiles = []*os.File{lock.File()}
	k.command.Stdout, k.command.Stderr = outputs[0], outputs[1]
	// a Ctrl-C is for this process; and its end is no SIGHUP to one that is stopped
	k.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c.bound {
		k.command.Args = append(k.command.Args, "--bound", c.dir)
		if k.stdin, err = k.command.StdinPipe(); err != nil {
			return fmt.Errorf("start executor %s: %w", name, err)
		}
	}
	if c.paced {
		k.command.Args = append(k.command.Args, "--paced")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.profile != "" {
		path := c.profile
		if c.profiled {
			path += "." + name
		}
		c.profiled = true
		k.command.Args = append(k.command.Args, "--profile", path)
	}
	if err := k.command.Start(); err != nil {
		return fmt.Errorf("start executor %s: %w", name, err)
	}
	c.running[name] = k
	if c.paced {
		fmt.Fprintln(k.stdin, c.until) // if it has ended already, that is told elsewhere
	}
	c.done.Go(func() {
		err := k.command.Wait()
		c.mu.Lock()
		delete(c.running, name)
		c.mu.Unlock()
		ended(ending(err, problems), lifelock.Ended(c.folder(), name))
	})
	return nil
}

// kill ends an executor that was started by this process. That it has ended is told as ever.
func (c *children) kill(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.running[name]; k != nil {
		_ = k.command.Process.Kill() // it may just have ended
	}
}

// lives reports whether an executor lives that was started from this folder of state, by this process or by one before
// it, and if not, which lives of that name have ended.
func (c *children) lives(name string) (ended []string, lives, known bool) {
	c.mu.Lock()
	running := c.running[name] != nil
	c.mu.Unlock()
	if running {
		return nil, true, true // whose end is told otherwise
	}
	if lives, known = lifelock.Lives(c.folder(), name); known && !lives {
		ended = lifelock.Ended(c.folder(), name)
	}
	return ended, lives, known
}

// train has the executors, and those that are started later, train up to an iteration.
func (c *children) train(until int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = until
	for _, k := range c.running {
		fmt.Fprintln(k.stdin, until)
	}
}

// folder is where the files of executors are.
func (c *children) folder() string { return executorsIn(c.dir) }

// executorsIn is where the files of executors are in a controller's folder.
func executorsIn(dir string) string { return filepath.Join(dir, "executors") }

// anyLives reports whether an executor that has its files in a folder holds its lock.
func anyLives(folder string) bool {
	locks, _ := filepath.Glob(filepath.Join(folder, "*.lock"))
	return slices.ContainsFunc(locks, func(path string) bool {
		lives, known := lifelock.Lives(folder, strings.TrimSuffix(filepath.Base(path), ".lock"))
		return lives && known
	})
}

// files are those of an executor: its credentials, what it writes to stdout, and to stderr.
func (c *children) files(name string) (credentials, log, problems string) {
	path := filepath.Join(c.folder(), name)
	return path + ".json", path + ".log", path + ".err"
}

// forget removes the files of an executor that has ended, also of one that was started by a process before this one.
func (c *children) forget(name string) {
	credentials, log, problems := c.files(name)
	for _, path := range [...]string{credentials, log, problems} {
		os.Remove(path) // there may be none
	}
	_ = lifelock.Remove(c.folder(), name) // the worst is a file that stays
}

// ending says how a process ended, with the last lines that it wrote to stderr.
func ending(err error, problems string) string {
	why := "its executor has left"
	if err != nil {
		why = fmt.Sprintf("its executor ended: %v", err)
	}
	const shown = 3
	text, _ := os.ReadFile(problems) // the reason stands without it
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i, line := range lines { // of --log-format json
		var record struct{ Msg, Err string }
		if json.Unmarshal([]byte(line), &record) == nil && record.Msg != "" {
			lines[i] = strings.TrimSuffix(record.Msg+": "+record.Err, ": ")
		}
	}
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "panic: ") }); i >= 0 {
		lines = lines[i : i+1] // what follows is for us
	}
	if last := strings.Join(lines[max(0, len(lines)-shown):], " | "); last != "" {
		why += "; its last lines: " + last
	}
	return why
}

// endTimeout is how long executors have to end by themselves.
const endTimeout = 5 * time.Second

// end ends all executors that are bound to this process and waits for them. The caller sees to their folder if it keeps
// that.
func (c *children) end(keeps bool) {
	c.mu.Lock()
	for _, k := range c.running {
		if k.stdin != nil && keeps {
			fmt.Fprintln(k.stdin, keepFolder) // one that has ended has removed nothing
		}
		if k.stdin != nil {
			k.stdin.Close()
		}
	}
	c.mu.Unlock()
	late := time.AfterFunc(endTimeout, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, k := range c.running {
			k.command.Process.Kill()
		}
	})
	defer late.Stop()
	c.done.Wait()
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tensile/graph"
)

// What is available is what the kernel says, or the lowest limit of the control groups that hold the process.
func TestAvailableMemory(t *testing.T) {
	const meminfo = "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:    8000000 kB\n"
	for _, test := range []struct {
		name  string
		files map[string]string
		want  graph.Bytes
	}{
		{"no groups", map[string]string{"proc/meminfo": meminfo}, 8000000 * graph.KiB},
		{"no limit", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n"}, 8000000 * graph.KiB},
		{"a limit", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "1048576\n"}, graph.MiB},
		{"a limit further up", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "4096000\n", "sys/fs/cgroup/memory.max": "1048576"}, graph.MiB},
		{"a larger limit", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "1000000000000\n"}, 8000000 * graph.KiB},
		{"version 1", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "9:cpu,memory:/a\n3:pids:/a\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1048576\n"}, graph.MiB},
		{"it does not say", map[string]string{"proc/meminfo": "MemTotal: 5 kB\n"}, 0},
		{"not there", nil, 0},
	} {
		root := t.TempDir()
		for name, text := range test.files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := availableMemory(root)
		if got != test.want || (err == nil) != (test.want > 0) {
			t.Errorf("%s: %v, %v, want %v", test.name, got, err, test.want)
		}
	}
}

func TestHostMemoryFlag(t *testing.T) {
	for _, test := range []struct {
		text      string
		simulated bool
		want      graph.Bytes
		wrong     string
	}{
		{"none", false, 0, ""},
		{"", true, 0, ""},
		{"64MiB", false, 64 * graph.MiB, ""},
		{"64MiB", true, 64 * graph.MiB, ""},
		{"64", false, 0, "64 bytes are enough for no job: give a unit"},
		{"lots", false, 0, `--host-memory "lots"`},
		{"0%", false, 0, "give a percentage such as 80%"},
		{"150%", false, 0, "give a percentage such as 80%"},
	} {
		f := hostMemoryFlag{test.text}
		got, err := f.limit(test.simulated)
		if got != test.want || (err == nil) != (test.wrong == "") ||
			err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("--host-memory %q: %v, %v; want %v, %q", test.text, got, err, test.want, test.wrong)
		}
	}
	if _, err := availableMemory("/"); err != nil {
		t.Skip(err)
	}
	half, err := (&hostMemoryFlag{"50%"}).limit(false)
	all, err2 := (&hostMemoryFlag{""}).limit(false)
	if err != nil || err2 != nil || half <= 0 || all <= half {
		t.Errorf("half of what is available is %v, 80%% are %v: %v, %v", half, all, err, err2)
	}
}

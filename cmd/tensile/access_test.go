//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tensile/data/weights"
	"tensile/graph"
	"tensile/wire"
)

// Jobs of a user read and write files in that user's folder and in those of --allow; what else they name, by whichever
// path of a job, is refused before they train. Jobs of the administrator may name any file.
func TestClusterPathsOfUsers(t *testing.T) {
	t.Parallel()
	shared, others := t.TempDir(), t.TempDir()
	c := startCluster(t, 2*graph.MiB, "--allow", shared, "--user-quota", "64MiB")
	ada := filepath.Join(c.files, "ada.json")
	c.tell("credentials", "ada", "--user", "--output", ada)
	home := filepath.Join(c.state, usersName, "ada")
	secret := filepath.Join(c.state, "secret")
	before := read(t, secret)
	precious := filepath.Join(others, "w.safetensors")
	if err := weights.Write(nil, precious, weights.File{}); err != nil {
		t.Fatal(err)
	}
	kept := read(t, precious)
	submit := func(name string, as ...string) {
		c.tell(append([]string{"submit", "lenet", "--image", "12", "--batch", "8", "--iterations", "2", "--name",
			name}, as...)...)
	}

	submit("own", "--credentials", ada, "--save", "runs/w.safetensors")
	submit("shared", "--credentials", ada, "--save", filepath.Join(shared, "w.safetensors"))
	submit("administrators", "--save", filepath.Join(others, "new.safetensors"))
	c.in(wire.JobFinished, "own")
	c.in(wire.JobFinished, "shared")
	c.in(wire.JobFinished, "administrators")
	for _, path := range []string{filepath.Join(home, "runs", "w.safetensors"),
		filepath.Join(shared, "w.safetensors"), filepath.Join(others, "new.safetensors")} {
		if _, err := weights.Read(path); err != nil {
			t.Error(err)
		}
	}
	submit("again", "--credentials", ada, "--weights", "runs/w.safetensors", "--save", "again.safetensors")
	c.in(wire.JobFinished, "again")

	fill := filepath.Join(home, "fill")
	write(t, fill, "")
	if err := os.Truncate(fill, 64<<20); err != nil {
		t.Fatal(err)
	}
	submit("full", "--credentials", ada, "--save", "full.safetensors")
	want := "folder " + home + " may have 64MiB, and has room for 0B: remove files there, or ask an " +
		"administrator for a larger --user-quota"
	if r := c.in(wire.JobFailed, "full"); !strings.HasSuffix(r.Reason, want) || r.Iteration > 0 {
		t.Errorf("after %d iterations a job whose file has no room is over: %q, want %q", r.Iteration, r.Reason, want)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}

	for link, to := range map[string]string{filepath.Join(home, "out"): others, filepath.Join(home, "file"): precious,
		filepath.Join(shared, "out"): others} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	refused := map[string][]string{
		"a": {"--save", "../../secret"},
		"b": {"--save", secret},
		"c": {"--save", "out/w.safetensors"},
		"d": {"--save", "file"},
		"e": {"--save", filepath.Join(shared, "out", "w.safetensors")},
		"f": {"--save", precious},
		"g": {"--save", filepath.Join(c.state, usersName, "bob", "w.safetensors")},
		"h": {"--weights", precious},
		"i": {"--weights", "file"},
		"j": {"--data", "out"},
		"k": {"--data", filepath.Join(others, "data.npz")},
		"l": {"--from", precious},
		"m": {"--from", "out/w.safetensors"},
	}
	for name, flags := range refused {
		submit(name, append([]string{"--credentials", ada}, flags...)...)
	}
	for name, flags := range refused {
		path := flags[1]
		if !filepath.IsAbs(path) {
			path = filepath.Join(home, path)
		}
		r := c.in(wire.JobFailed, name)
		want := []string{
			path + ": this executor opens files of users in " + home + " and " + shared + " alone, and it ",
			"name a file in such a folder, or have it started with --allow FOLDER"}
		if strings.HasPrefix(path, c.state) && !strings.HasPrefix(path, home) { // which nobody may name
			want = []string{path + " lies in the state folder " + c.state}
		}
		lacks := func(part string) bool { return !strings.Contains(r.Reason, part) }
		if slices.ContainsFunc(want, lacks) || r.Iteration > 0 {
			t.Errorf("after %d iterations job %s with %q is over: %q, want %q", r.Iteration, name, flags, r.Reason,
				want)
		}
	}
	if !bytes.Equal(read(t, secret), before) || !bytes.Equal(read(t, precious), kept) {
		t.Error("a file of others is another")
	}
	c.end()
	line := c.refused("controller", "--state", c.state, "--allow", filepath.Dir(c.state))
	if !strings.HasPrefix(line, "tensile: --allow "+filepath.Dir(c.state)+": users could change what ") {
		t.Errorf("of a folder above its own the controller says %q", line)
	}
}

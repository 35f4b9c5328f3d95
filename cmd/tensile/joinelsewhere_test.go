//go:build linux

package main

import (
	"cmp"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/wire"
	"tensile/wire/bus"
)

// ownAddress is the address of this machine in a network, or, where it is in none, of another name for itself.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var found string
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			found = cmp.Or(found, ip.IP.String())
		}
	}
	return cmp.Or(found, "127.0.0.2")
}

// A script joins by the network address of a controller that listens on all of them, with a user's credentials and
// without the controller's folder. It is that user's job. Without credentials, or with others, it is refused in one
// line, and nothing is left of it.
func TestJoinFromElsewhere(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 4*graph.MiB, "--tls", "--listen", "0.0.0.0:0")
	local, err := bus.ReadCredentials(filepath.Join(c.state, clientFile))
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(strings.TrimPrefix(local.URL, "tls://"))
	if err != nil {
		t.Fatal(err)
	}
	address := "tls://" + net.JoinHostPort(ownAddress(t), port)
	path := filepath.Join(c.files, "ada.json")
	c.tell("credentials", "ada", "--user", "--nats", address, "--output", path)
	right, err := bus.ReadCredentials(path)
	if err != nil || right.URL != address {
		t.Fatalf("credentials %+v, %v", right, err)
	}
	lab := filepath.Join(c.files, "lab.json")
	c.tell("credentials", "lab", "--nats", address, "--output", lab)
	elsewhere := t.TempDir()
	for _, test := range []struct {
		what, want string
		change     func(*bus.Credentials)
		args       []string
	}{
		{what: "no credentials", want: "no controller runs on the state folder", args: []string{"--nats", address}},
		{what: "no file", want: "no such file", args: []string{"--credentials", filepath.Join(elsewhere, "none.json")}},
		{what: "an executor's",
			want: "is for executor lab, not for commands: tensile controller credentials NAME --user",
			args: []string{"--credentials", lab}},
		{what: "another password", want: "is refused: use the credentials",
			change: func(to *bus.Credentials) { to.Password = strings.Repeat("x", len(to.Password)) }},
		{what: "another user", want: "is refused: use the credentials",
			change: func(to *bus.Credentials) { to.User = strings.Replace(to.User, "ada", "bob", 1) }},
		{what: "another authority", want: "failed to verify certificate",
			change: func(to *bus.Credentials) { to.CA = "" }},
		{what: "another port", want: "start a controller there",
			change: func(to *bus.Credentials) { to.URL = "tls://" + net.JoinHostPort(ownAddress(t), "1") }},
	} {
		args := test.args
		if test.change != nil {
			wrong := right
			test.change(&wrong)
			name := filepath.Join(c.files, "wrong.json")
			if err := bus.WriteCredentials(name, wrong); err != nil {
				t.Fatal(err)
			}
			args = []string{"--credentials", name}
		}
		args = append([]string{"join", "--state", elsewhere, "--name", "one"}, args...)
		if line := c.refused(append(args, "--", "fakescript")...); !strings.Contains(line, test.want) {
			t.Errorf("with %s: %s, want %s", test.what, line, test.want)
		}
	}
	if jobs := c.jobs(); len(jobs) > 0 {
		t.Errorf("there are %+v", jobs)
	}
	if left := files(t, elsewhere); len(left) > 0 {
		t.Errorf("%q were left behind", left)
	}

	file, err := filepath.Abs("../../models/external/testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, elsewhere, "join", "--state", elsewhere, "--credentials", path, "--name", "one", "--memory",
		fmt.Sprint(int64(firstClaim)), "--", "fakescript", file, "0", "job")
	p.line("by plan [1-9]")
	if r := c.planned("one"); r.Spec.Owner != "ada" {
		t.Errorf("the job is %s's, want ada's", r.Spec.Owner)
	}
	c.tell("stop", "one")
	if err := p.wait(); err != nil {
		t.Errorf("the command ends with %v; stderr:\n%s", err, &p.stderr)
	}
	c.in(wire.JobStopped, "one")
	if left := files(t, elsewhere); len(left) > 0 {
		t.Errorf("%q were left behind", left)
	}
	c.tell("credentials", "ada", "--user", "--revoke")
	line := c.refused("join", "--state", elsewhere, "--credentials", path, "--", "fakescript")
	if !strings.Contains(line, "is refused: use the credentials") {
		t.Errorf("with what was revoked: %s", line)
	}
	c.end()
}

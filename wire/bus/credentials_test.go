package bus

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSecret(t *testing.T) {
	dir := t.TempDir()
	one, err := openSecret(dir)
	must(t, err)
	again, err := openSecret(dir)
	must(t, err)
	other, err := openSecret(t.TempDir())
	must(t, err)
	if diff := cmp.Diff(one, again); diff != "" {
		t.Errorf("the secret has changed:\n%s", diff)
	}
	name := filepath.Join(dir, "secret")
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 || info.Size() != secretBytes {
		t.Errorf("%v, %v", info, err)
	}
	must(t, writeIssued(dir, nil))
	for _, test := range []struct {
		user, password string
		want           bool
	}{
		{"x-a", one.password("x-a", 0), true},
		{"x-a", one.password("x-a", 1), false},
		{"x-a", one.password("x-b", 0), false},
		{"x-a", other.password("x-a", 0), false},
		{"x-a", "", false},
		{"", "", false},
	} {
		err := (&keyring{dir: dir, secret: one}).check(test.user, test.password)
		if got := err == nil; got != test.want {
			t.Errorf("password %q of %q: %v, want %v", test.password, test.user, got, test.want)
		}
	}
	must(t, os.Chmod(name, 0o640))
	if _, err := openSecret(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a secret that others can read: %v", err)
	}
	must(t, os.Chmod(name, 0o600))
	must(t, os.WriteFile(name, []byte("short"), 0o600))
	if _, err := openSecret(dir); err == nil || !strings.Contains(err.Error(), "5 bytes") {
		t.Errorf("a short secret: %v", err)
	}
}

func TestIssue(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Options{Dir: dir, Listen: "127.0.0.1:0", TLS: true})
	got, err := Issue(dir, s.Credentials(Client), Executor("a"))
	must(t, err)
	if diff := cmp.Diff(s.Credentials(Executor("a")), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := Issue(t.TempDir(), got, Client); err == nil {
		t.Error("credentials without a secret")
	}
}

// Without the list of what was revoked nobody is let in, while a server runs and when one is to start, and nothing is
// given out.
func TestListHasGone(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Options{Dir: dir, Listen: "127.0.0.1:0"})
	ada := s.Credentials(User("ada"))
	_, err := Issue(dir, ada, User("ada"))
	must(t, err)
	must(t, Revoke(dir, User("ada")))
	list := filepath.Join(dir, issuedFile)
	text, err := os.ReadFile(list)
	must(t, err)
	must(t, os.Remove(list))
	if c, err := Connect(within(t), s.Credentials(Client), ConnOptions{}); err == nil {
		c.Close()
		t.Error("a client is let in")
	}
	if _, err := Issue(dir, ada, User("ada")); err == nil || !strings.Contains(err.Error(), "restore it") {
		t.Errorf("credentials are given out: %v", err)
	}
	s.Close()
	if s, err := Start(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "write [] to it") {
		s.Close()
		t.Fatalf("a server starts without the list: %v", err)
	}
	must(t, os.WriteFile(list, text, 0o600))
	s = start(t, Options{Dir: dir, Listen: "127.0.0.1:0"})
	ada.URL = s.URL()
	if c, err := Connect(within(t), ada, ConnOptions{}); err == nil {
		c.Close()
		t.Error("revoked credentials are valid")
	}
}

// A folder in which others may put what they like is no state folder, and nobody else sees what is stored in one.
func TestFolderOfOthers(t *testing.T) {
	dir := t.TempDir()
	for _, mode := range []os.FileMode{0o777, 0o770, 0o702} {
		must(t, os.Chmod(dir, mode))
		if s, err := Start(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "chmod 700 it") {
			s.Close()
			t.Fatalf("mode %#o: %v", mode, err)
		}
	}
	must(t, os.Chmod(dir, 0o755))
	start(t, Options{Dir: dir}).Close()
	files := 0
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if files++; err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %#o", path, info.Mode().Perm())
		}
		if d.IsDir() {
			return filepath.SkipDir // nobody else comes to what is in it
		}
		return err
	}))
	if files < 4 {
		t.Errorf("%d files", files)
	}
}

func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "client.json")
	must(t, os.WriteFile(name, []byte("before"), 0o644))
	want := Credentials{URL: "tls://host:4222", User: Client, Password: "p", CA: "-----BEGIN\n"}
	must(t, WriteCredentials(name, want))
	got, err := ReadCredentials(name)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if info, _ := os.Stat(name); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("files left: %v", files)
	}
	must(t, os.Chmod(name, 0o644))
	if _, err := ReadCredentials(name); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("credentials that others can read: %v", err)
	}
	for _, text := range []string{"", "x", "{}", `{"url":1}`} {
		must(t, os.Remove(name))
		must(t, os.WriteFile(name, []byte(text), 0o600))
		if _, err := ReadCredentials(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := ReadCredentials(filepath.Join(dir, "none")); err == nil {
		t.Error("a file that is not there is no error")
	}
	if err := WriteCredentials(filepath.Join(dir, "none", "client.json"), want); err == nil {
		t.Error("a folder that is not there is no error")
	}
}

// A list of which any byte is another, or that ends early, lets nobody in and says so: revoked credentials stay so.
func TestListHasASum(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Options{Dir: dir, Listen: "127.0.0.1:0"})
	for _, name := range []string{"ada", "eve"} {
		_, err := Issue(dir, s.Credentials(Client), User(name))
		must(t, err)
	}
	must(t, Revoke(dir, User("eve")))
	want, err := Issues(dir)
	must(t, err)
	list := filepath.Join(dir, issuedFile)
	text, err := os.ReadFile(list)
	must(t, err)
	refused, checked := 0, 0
	check := func(what string, text []byte) {
		t.Helper()
		must(t, os.WriteFile(list, text, 0o600))
		got, err := Issues(dir)
		if checked++; err != nil && strings.Contains(err.Error(), issuedFile+" is damaged: ") {
			refused++
		} else if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	for at := range text {
		for _, bit := range []byte{1, 4, 0x20} {
			damaged := bytes.Clone(text)
			damaged[at] ^= bit
			check(fmt.Sprintf("byte %d is %q", at, damaged[at]), damaged)
		}
		if at < len(text)-1 { // without the line break it is whole
			check(fmt.Sprintf("it has %d bytes", at), text[:at])
		}
	}
	t.Logf("of %d damaged lists %d are refused", checked, refused)
	if refused < checked*3/4 {
		t.Errorf("of %d damaged lists %d are refused", checked, refused)
	}
	check("a list without a sum", []byte(`[{"user":"u-eve","issued":"2026-01-01T00:00:00Z","valid":true}]`))
	if c, err := Connect(within(t), s.Credentials(Client), ConnOptions{}); err == nil {
		c.Close()
		t.Error("a client is let in")
	}
	s.Close()
	if s, err := Start(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "damaged: it has no sum: ") {
		s.Close()
		t.Fatalf("a server starts with a damaged list: %v", err)
	}

	// One of before there were sums gets one.
	must(t, os.WriteFile(filepath.Join(dir, "lock"), []byte("there is a credentials.json\n"), 0o600))
	start(t, Options{Dir: dir}).Close()
	if text, err := os.ReadFile(list); err != nil || !bytes.Contains(text, []byte(`"sha256"`)) {
		t.Errorf("the list is %s, %v", text, err)
	}
}

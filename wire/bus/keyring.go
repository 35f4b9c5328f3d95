package bus

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"tensile/wire"
)

// Issued are credentials that were given out.
type Issued struct {
	User    string    `json:"user"`
	At      time.Time `json:"issued"`           // when they were given out first, or anew after they were revoked
	Revoked int       `json:"revoked,omitzero"` // how often; it is a part of the password
	Valid   bool      `json:"valid"`            // false: they were revoked, and not given out again
}

// issuedFile is the file in a server's directory with all that was given out.
const issuedFile = "credentials.json"

// Issues lists what was given out by [Issue] from a directory, by user.
func Issues(dir string) ([]Issued, error) {
	path := filepath.Join(dir, issuedFile)
	text, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: nobody is let in without it, since what was revoked would be valid again: restore "+
			"it from a copy, or if nothing was ever revoked write [] to it, with mode 600", err)
	} else if err != nil {
		return nil, err
	}
	list, err := parseIssued(text, marked(dir) == markSummed)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w: restore it from a copy; without it, what was revoked would be "+
			"valid again", path, err)
	}
	return list, nil
}

// issuedList is the form of the file.
type issuedList struct {
	Sum    string   `json:"sha256"` // of the list as compact JSON
	Issued []Issued `json:"issued"`
}

// sumOf is the sum of a list.
func sumOf(list []Issued) string {
	text, err := json.Marshal(list)
	if err != nil {
		panic(fmt.Sprintf("bus: a list of credentials cannot be written as JSON: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// parseIssued reads the list. An administrator may write an empty one without a sum. In a directory that no release has
// opened since there are sums, any may be without one.
func parseIssued(text []byte, summed bool) ([]Issued, error) {
	var file issuedList
	if bytes.HasPrefix(text, []byte("[")) {
		if err := json.Unmarshal(text, &file.Issued); err != nil {
			return nil, err
		}
		if summed && len(file.Issued) > 0 {
			return nil, errors.New("it has no sum")
		}
	} else if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	} else if file.Sum != sumOf(file.Issued) {
		return nil, errors.New("its sum is another")
	}
	broken := func(i Issued) bool {
		return i.Revoked < 0 || i.Revoked > maxRevoked || !i.Valid && i.Revoked == 0
	}
	if file.Issued == nil || slices.ContainsFunc(file.Issued, broken) {
		return nil, errors.New("no release has written it")
	}
	return file.Issued, nil
}

// maxRevoked is how often the credentials of one user can have been revoked: all passwords before are compared with a
// wrong one.
const maxRevoked = 10_000

// Issue returns the credentials of a user of the server that keeps its state in a directory: for the address and
// certificate of another user's. Those of a user who had some before are the same, unless they were revoked.
func Issue(dir string, other Credentials, user string) (Credentials, error) {
	s, err := readPrivate(filepath.Join(dir, secretFile))
	if err != nil {
		return Credentials{}, fmt.Errorf("issue credentials: %w", err)
	}
	err = changeIssued(dir, func(list []Issued) ([]Issued, error) {
		i := slices.IndexFunc(list, func(i Issued) bool { return i.User == user })
		if i < 0 {
			list = append(list, Issued{User: user})
			i = len(list) - 1
		}
		if !list[i].Valid {
			list[i].At, list[i].Valid = time.Now().UTC().Truncate(time.Second), true
		}
		other.User, other.Password = user, secret(s).password(user, list[i].Revoked)
		return list, nil
	})
	return other, err
}

// ErrNotIssued is returned by [Revoke] for a user who has no credentials.
var ErrNotIssued = errors.New("there are no such credentials")

// Revoke makes the credentials of a user invalid. A server of that directory refuses them from then on, and closes the
// connections that were made with them, within the tenth of a second.
func Revoke(dir, user string) error {
	return changeIssued(dir, func(list []Issued) ([]Issued, error) {
		i := slices.IndexFunc(list, func(i Issued) bool { return i.User == user && i.Valid })
		if i < 0 {
			return nil, ErrNotIssued
		}
		list[i].Valid = false
		list[i].Revoked++
		return list, nil
	})
}

// changeIssued replaces the list of a directory; one process at a time does.
func changeIssued(dir string, change func([]Issued) ([]Issued, error)) error {
	lock, err := os.Open(filepath.Join(dir, secretFile)) // which is there, and is not replaced
	if err != nil {
		return fmt.Errorf("change credentials: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("change credentials: lock %s: %w", lock.Name(), err)
	}
	before, err := Issues(dir)
	if err != nil {
		return err
	}
	list, err := change(slices.Clone(before))
	if err != nil || slices.Equal(list, before) {
		return err
	}
	if err := writeIssued(dir, list); err != nil {
		return fmt.Errorf("change credentials: %w", err)
	}
	return nil
}

// writeIssued replaces the list.
func writeIssued(dir string, list []Issued) error {
	slices.SortFunc(list, func(a, b Issued) int { return cmp.Compare(a.User, b.User) })
	if list == nil {
		list = []Issued{}
	}
	text, err := json.MarshalIndent(issuedList{sumOf(list), list}, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("bus: a list of credentials cannot be written as JSON: %v", err))
	}
	return writePrivate(filepath.Join(dir, issuedFile), append(text, '\n'))
}

// password returns the password of a user whose credentials were revoked so often.
func (s secret) password(user string, revoked int) string {
	mac := hmac.New(sha256.New, s)
	mac.Write([]byte(user))
	if revoked > 0 { // no name has a line break
		fmt.Fprintf(mac, "\n%d", revoked)
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// keyring knows the passwords of all users of a directory.
type keyring struct {
	dir    string
	secret secret

	mu      sync.Mutex
	read    fs.FileInfo    // what the list's file was when it was read
	revoked map[string]int // by user; the credentials of others never were
	gone    []string       // users whose credentials were revoked since revokedSince was asked
	closed  error          // why nobody is let in: the list cannot be read
}

// markSummed is what the lock file says once the list of its directory has a sum.
const markSummed = "there is a " + issuedFile + " with a sum\n"

// marked is what the lock file of a directory says; "": nothing.
func marked(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, "lock")) // who cannot read it cannot read the list
	return string(text)
}

// openKeyring reads the secret and the list of a directory. One that is new, or of a release that made no list before
// something was given out, gets a list, and one of before lists had sums gets that; the lock file says from then on
// that there has to be one.
func openKeyring(dir string) (*keyring, error) {
	if mark := marked(dir); mark != markSummed {
		list, err := Issues(dir)
		if err == nil || mark == "" && errors.Is(err, fs.ErrNotExist) {
			err = writeIssued(dir, list)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "lock"), []byte(markSummed), 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	s, err := openSecret(dir)
	if err != nil {
		return nil, err
	}
	k := &keyring{dir: dir, secret: s}
	k.reload() // nobody else has it yet
	k.gone = nil
	return k, k.closed
}

// newlyRevoked returns the users whose credentials were revoked since it was asked last.
func (k *keyring) newlyRevoked() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reload()
	gone := k.gone
	k.gone = nil
	return gone
}

// reload reads the list if it has changed. The mutex is held.
func (k *keyring) reload() {
	info, err := os.Stat(filepath.Join(k.dir, issuedFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		_, k.closed = Issues(k.dir)
		return
	case err != nil:
		k.closed = err
		return
	case k.read != nil && os.SameFile(k.read, info) && k.read.ModTime().Equal(info.ModTime()):
		return
	}
	list, err := Issues(k.dir)
	if k.closed = err; err != nil {
		return
	}
	k.read = info
	revoked := make(map[string]int)
	for _, i := range list {
		if i.Revoked > 0 {
			revoked[i.User] = i.Revoked
		}
		if i.Revoked != k.revoked[i.User] {
			k.gone = append(k.gone, i.User)
		}
	}
	k.revoked = revoked
}

// password returns the password of a user that is valid now.
func (k *keyring) password(user string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.secret.password(user, k.revoked[user])
}

// check returns why a user is not let in; nil: the password is right. It takes a time that does not depend on how much
// of the password is right.
func (k *keyring) check(user, password string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reload()
	internal := user == Controller // this process connects within it, and goes on
	switch {
	case k.closed != nil && !internal:
		return k.closed
	case hmac.Equal([]byte(k.secret.password(user, k.revoked[user])), []byte(password)):
		return nil
	}
	for n := range k.revoked[user] {
		if hmac.Equal([]byte(k.secret.password(user, n)), []byte(password)) {
			return fmt.Errorf("the credentials of user %q were revoked", user)
		}
	}
	return fmt.Errorf("wrong password of user %q", user)
}

// User is the user for a person: what a command line may, under a name of its own.
func User(name string) string { return userPrefix + wire.Token(name) }

const userPrefix = "u-"

// UserName is the name of the person or the executor that a user is: the other way round than [User] and [Executor].
func UserName(user string) (name string, person, ok bool) {
	for _, prefix := range [...]string{userPrefix, Executor("")} {
		if len(user) > len(prefix) && user[:len(prefix)] == prefix {
			name, ok := wire.NameOf(user[len(prefix):])
			return name, prefix == userPrefix, ok
		}
	}
	return "", false, false
}

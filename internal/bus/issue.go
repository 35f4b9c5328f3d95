package bus

import (
	"fmt"
	"path/filepath"
)

// Issue returns the credentials of a user of the server that keeps its state in a directory: for the address and
// certificate of another user's.
func Issue(dir string, other Credentials, user string) (Credentials, error) {
	key, err := readPrivate(filepath.Join(dir, "secret"))
	if err != nil {
		return Credentials{}, fmt.Errorf("issue credentials: %w", err)
	}
	other.User, other.Password = user, secret(key).password(user)
	return other, nil
}

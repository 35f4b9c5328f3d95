package bus

import (
	"fmt"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// gate decides who is let in, and puts each user into its account.
type gate struct {
	secret secret
	log    func(kind, line string)

	mu     sync.Mutex
	server *server.Server // nil until it serves
	users  map[string]*server.User
}

// open lets users in from now on.
func (g *gate) open(s *server.Server) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.server = s
	g.users = map[string]*server.User{Controller: {Username: Controller, Account: s.GlobalAccount()}}
	return export(s.GlobalAccount())
}

// Check is asked by the server about each new connection.
func (g *gate) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	if !g.secret.knows(o.Username, o.Password) {
		g.log("connections", fmt.Sprintf("%s is refused: wrong password of user %q", c.RemoteAddress(), o.Username))
		return false
	}
	user, err := g.user(o.Username)
	if err != nil {
		g.log("connections", fmt.Sprintf("%s is refused: %v", c.RemoteAddress(), err))
		return false
	}
	c.RegisterUser(user)
	return true
}

// user returns a user with its account, which is made when it first comes.
func (g *gate) user(name string) (*server.User, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := g.users[name]; u != nil {
		return u, nil
	}
	a, ok := accessOf(name)
	if !ok || g.server == nil {
		return nil, fmt.Errorf("there is no user %q", name)
	}
	account, _ := g.server.LookupOrRegisterAccount(name)
	if err := a.share(g.server.GlobalAccount(), account); err != nil {
		return nil, fmt.Errorf("account of %q: %w", name, err)
	}
	u := &server.User{Username: name, Account: account, Permissions: a.permissions()}
	g.users[name] = u
	return u, nil
}

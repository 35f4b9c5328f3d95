package bus

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"tensile/wire"
)

// access is what the account of a user shares with the controller's.
type access struct {
	publish   []string // subjects it may publish to, for an answer or not
	gated     []string // subjects it may publish to by way of the gate
	asks      string   // for an answer of the controller: the subject that a request to control gets; "": it may not
	deny      []string // subjects among those that it may not publish to; a wildcard stands for a whole token
	subscribe []string // subjects it is told of
}

// executorAccess is that of an executor, given as a token.
func executorAccess(executor string) access {
	b, err := newBucket("x-" + executor)
	if err != nil {
		panic(fmt.Sprintf("bus: %q is no token of an executor: %v", executor, err))
	}
	return access{
		gated: []string{
			"$KV.status." + executor,
			"$KV.result." + executor + ".*",
			"report." + executor + ".*",
			"trace." + executor + ".*",
			logKind + executor + ".*",
		},
		publish: []string{
			directGet + "KV_orders.$KV.orders." + executor,
			directGet + b.stream(), directGet + b.stream() + ".$O." + b.name + ".M.*",
		},
		subscribe: []string{"now.$KV.orders." + executor},
	}
}

// anyExecutor holds the access of every executor.
var anyExecutor = access{
	gated: []string{"$KV.status.*", "$KV.result.*.*", "report.*.*", "trace.*.*", logKind + "*.*"},
	publish: []string{
		directGet + "KV_orders.$KV.orders.*",
		directGet + "*", directGet + "*.$O.*.M.*",
	},
	subscribe: []string{"now.$KV.orders.*"},
}

// clientAccess is that of the command lines of a user, who is named at the end of the subject of each request.
func clientAccess(user string) access {
	a := reads
	a.asks = wire.ControlSubject + "." + user
	return a
}

// reads is what all command lines may, beside asking. They write nothing: graphs come with requests.
var reads = access{
	publish: []string{
		directGet + "KV_record.>",
		directGet + "LOG.>",
		directGet + "*", directGet + "*.$O.*.M.*", // of any bucket
	},
	deny: []string{directGet + "KV_orders", directGet + "KV_status", directGet + "KV_result",
		directGet + "KV_device"},
	subscribe: []string{"now.$KV.record.*", "now.log.*.*", "traced.*.*"},
}

// accessOf returns the access of a user that is not the controller.
func accessOf(user string) (access, bool) {
	if _, person, ok := UserName(user); user == Client || person && ok {
		return clientAccess(user), true
	}
	executor, ok := strings.CutPrefix(user, "x-")
	if !ok || !bucketName.MatchString(executor) {
		return access{}, false
	}
	return executorAccess(executor), true
}

// leaderRead is the subject of requests to the leader of a stream for stored messages, followed by the stream's name.
const leaderRead = "$JS.API.STREAM.MSG.GET."

// ExternalAccess is what the external servers have to let a user do, as subjects: what it may publish to, among these
// what not, and what it may subscribe to. It is false for what is no user.
func ExternalAccess(user string) (publish, deny, subscribe []string, ok bool) {
	const inbox = "_INBOX.>"
	if user == Controller {
		return []string{">"}, nil, []string{">"}, true
	}
	a, ok := accessOf(user)
	if !ok {
		return nil, nil, nil, false
	}
	if a.asks != "" {
		publish = append(publish, a.asks)
		a.deny = append([]string{directGet + "KV_leader"}, a.deny...)
	}
	// What is stored they ask the leader of its stream, who is asked in the message for what; but for orders.
	of := func(subject string) string {
		stream, ok := strings.CutPrefix(subject, directGet)
		if !ok || strings.HasPrefix(stream, "KV_orders.") {
			return subject
		}
		stream, _, _ = strings.Cut(stream, ".")
		return leaderRead + stream
	}
	for _, subject := range append(a.gated, a.publish...) {
		if subject = of(subject); !slices.Contains(publish, subject) {
			publish = append(publish, subject)
		}
	}
	for _, subject := range a.deny {
		deny = append(deny, of(subject))
	}
	return publish, deny, append([]string{inbox}, a.subscribe...), true
}

// permissions let a misguided client be told, and logged, instead of speaking to nobody.
func (a access) permissions() *server.Permissions {
	publish := append(a.gated, a.publish...)
	if a.asks != "" {
		publish = append([]string{wire.ControlSubject}, publish...)
	}
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: publish, Deny: a.deny},
		Subscribe: &server.SubjectPermission{Allow: append([]string{"_INBOX.>"}, a.subscribe...)},
	}
}

// export offers the subjects of the table to other accounts. An account has those that share imports into it, no
// others.
func export(from *server.Account) error {
	if err := from.AddServiceExport(wire.ControlSubject+".*", nil); err != nil {
		return fmt.Errorf("export requests: %w", err)
	}
	for _, a := range []access{reads, anyExecutor} {
		for _, subject := range a.publish {
			if err := from.AddServiceExport(subject, nil); err != nil {
				return fmt.Errorf("export %s: %w", subject, err)
			}
		}
		for _, subject := range a.gated {
			if err := from.AddServiceExport(gated+subject, nil); err != nil {
				return fmt.Errorf("export %s: %w", subject, err)
			}
		}
		for _, subject := range a.subscribe {
			if err := from.AddStreamExport(subject, nil); err != nil {
				return fmt.Errorf("export %s: %w", subject, err)
			}
		}
	}
	return nil
}

// share imports the subjects into the account of a user.
func (a access) share(from, to *server.Account) error {
	if a.asks != "" {
		if err := to.AddServiceImport(from, wire.ControlSubject, a.asks); err != nil {
			return fmt.Errorf("import requests: %w", err)
		}
	}
	for _, subject := range a.publish {
		if err := to.AddServiceImport(from, subject, subject); err != nil {
			return fmt.Errorf("import %s: %w", subject, err)
		}
	}
	for _, subject := range a.gated {
		if err := to.AddServiceImport(from, subject, gated+subject); err != nil {
			return fmt.Errorf("import %s: %w", subject, err)
		}
	}
	for _, subject := range a.subscribe {
		if err := to.AddStreamImport(from, subject, ""); err != nil {
			return fmt.Errorf("import %s: %w", subject, err)
		}
	}
	return nil
}

// authenticator decides who is let in, and puts each user into its account.
type authenticator struct {
	keys *keyring
	log  func(kind, line string)

	mu     sync.Mutex
	server *server.Server // nil until it serves
	users  map[string]*server.User
	barred map[string]time.Time // until when users are not let in
}

// bar lets a user in no more until a time.
func (a *authenticator) bar(user string, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.barred == nil {
		a.barred = make(map[string]time.Time)
	}
	a.barred[user] = until
}

// admitUsers lets users in from now on.
func (a *authenticator) admitUsers(s *server.Server) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server = s
	a.users = map[string]*server.User{Controller: {Username: Controller, Account: s.GlobalAccount()}}
	// which the accounts of others do to their own requests when they import the subject
	err := s.GlobalAccount().AddMapping(wire.ControlSubject, wire.ControlSubject+"."+Controller)
	if err != nil {
		return fmt.Errorf("map requests: %w", err)
	}
	return export(s.GlobalAccount())
}

// Check is asked by the server about each new connection.
func (a *authenticator) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	if err := a.keys.check(o.Username, o.Password); err != nil {
		a.log("connections", fmt.Sprintf("%s is refused: %v", c.RemoteAddress(), err))
		return false
	}
	user, err := a.user(o.Username)
	if err != nil {
		a.log("connections", fmt.Sprintf("%s is refused: %v", c.RemoteAddress(), err))
		return false
	}
	c.RegisterUser(user)
	return true
}

// user returns a user with its account, which is made when it first comes.
func (a *authenticator) user(name string) (*server.User, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Now().Before(a.barred[name]) {
		return nil, fmt.Errorf("user %q goes on sending what is refused: it is let in later", name)
	}
	delete(a.barred, name)
	if u := a.users[name]; u != nil {
		return u, nil
	}
	may, ok := accessOf(name)
	if !ok || a.server == nil {
		return nil, fmt.Errorf("there is no user %q", name)
	}
	account, _ := a.server.LookupOrRegisterAccount(name)
	if err := may.share(a.server.GlobalAccount(), account); err != nil {
		return nil, fmt.Errorf("account of %q: %w", name, err)
	}
	u := &server.User{Username: name, Account: account, Permissions: may.permissions()}
	a.users[name] = u
	return u, nil
}

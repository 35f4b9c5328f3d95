package bus

import (
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// signer is an operator or an account: a key that signs what others claim.
type signer struct {
	key    nkeys.KeyPair
	public string
}

func newSigner(t *testing.T, prefix nkeys.PrefixByte) signer {
	t.Helper()
	key, err := nkeys.CreatePair(prefix)
	must(t, err)
	public, err := key.PublicKey()
	must(t, err)
	return signer{key, public}
}

// creds is the text of a .creds file: a user of an account, who may what ExternalAccess says.
func (s signer) creds(t *testing.T, user string) string {
	t.Helper()
	u := newSigner(t, nkeys.PrefixByteUser)
	publish, deny, subscribe, _ := ExternalAccess(user)
	claims := jwt.NewUserClaims(u.public)
	claims.Pub = jwt.Permission{Allow: publish, Deny: deny}
	claims.Sub = jwt.Permission{Allow: subscribe}
	token, err := claims.Encode(s.key)
	must(t, err)
	seed, err := u.key.Seed()
	must(t, err)
	text, err := jwt.FormatUserConfig(token, seed)
	must(t, err)
	return string(text)
}

// Users of servers that trust an operator connect by their .creds files, and may what their JWT says. That of another
// account's key is refused.
func TestCreds(t *testing.T) {
	t.Parallel()
	operator, system := newSigner(t, nkeys.PrefixByteOperator), newSigner(t, nkeys.PrefixByteAccount)
	account, stranger := newSigner(t, nkeys.PrefixByteAccount), newSigner(t, nkeys.PrefixByteAccount)
	trusted := jwt.NewOperatorClaims(operator.public)
	tokens := new(server.MemAccResolver)
	for _, a := range []signer{system, account} {
		claims := jwt.NewAccountClaims(a.public)
		if a == account {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit}
		}
		token, err := claims.Encode(operator.key)
		must(t, err)
		must(t, tokens.Store(a.public, token))
	}
	o := startOthers(t, 1, func(o *server.Options) {
		o.Users, o.TrustedOperators, o.AccountResolver = nil, []*jwt.OperatorClaims{trusted}, tokens
		o.SystemAccount = system.public
	})
	login := func(s signer, user string) Credentials {
		l, err := parseLogin(s.creds(t, user))
		must(t, err)
		return Credentials{URL: o.urls, User: user, External: true, Login: l}
	}
	c := joinWith(t, login(account, Controller), ConnOptions{Log: lines(t)})
	a := joinWith(t, login(account, Executor("a")), ConnOptions{Log: lines(t)})
	ctx := within(t)
	must(t, c.Put(ctx, "orders.a", []byte("own")))
	must(t, c.Put(ctx, "orders.b", []byte("another's")))
	if got, err := a.Get(ctx, "orders.a"); err != nil || string(got) != "own" {
		t.Errorf("its own orders are %q, %v", got, err)
	}
	if got, err := a.Get(ctx, "orders.b"); err == nil || !strings.Contains(err.Error(), "may not publish to") {
		t.Errorf("another's orders are %q, %v", got, err)
	}
	if _, err := Connect(ctx, login(stranger, Controller), ConnOptions{}); err == nil ||
		!strings.Contains(err.Error(), "this login is refused") {
		t.Errorf("a user of another account: %v", err)
	}
}

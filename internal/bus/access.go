package bus

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// access is what a user's account shares with the controller's.
type access struct {
	says  []string // subjects it may publish to, for an answer or not
	not   []string // subjects among those that it may not publish to; a wildcard stands for a whole token
	hears []string // subjects it is told of
}

// executorAccess is that of an executor, given as a token.
func executorAccess(executor string) access {
	b, err := newBucket("x-" + executor)
	if err != nil {
		panic(fmt.Sprintf("bus: %q is no token of an executor: %v", executor, err))
	}
	return access{
		says: []string{
			"$KV.status." + executor,
			"report." + executor + ".*",
			"log." + executor + ".*",
			directGet + "KV_orders.$KV.orders." + executor,
			directGet + b.stream(), directGet + b.stream() + ".$O." + b.name + ".M.*",
		},
		hears: []string{"now.$KV.orders." + executor},
	}
}

// anyExecutor holds the access of every executor.
var anyExecutor = access{
	says: []string{
		"$KV.status.*",
		"report.*.*",
		"log.*.*",
		directGet + "KV_orders.$KV.orders.*",
		directGet + "*", directGet + "*.$O.*.M.*",
	},
	hears: []string{"now.$KV.orders.*"},
}

// clientAccess is that of command lines.
var clientAccess = access{
	says: []string{
		"control",
		"$O.graphs.C.*", "$O.graphs.M.*",
		directGet + "KV_record.>",
		directGet + "LOG.>",
		directGet + "*", directGet + "*.$O.*.M.*", // of any bucket
	},
	not:   []string{directGet + "KV_orders", directGet + "KV_status"},
	hears: []string{"now.$KV.record.*", "now.log.*.*"},
}

// accessOf returns the access of a user that is not the controller.
func accessOf(user string) (access, bool) {
	if user == Client {
		return clientAccess, true
	}
	executor, ok := strings.CutPrefix(user, "x-")
	if !ok || !bucketName.MatchString(executor) {
		return access{}, false
	}
	return executorAccess(executor), true
}

// permissions let a misguided client be told, and logged, instead of speaking to nobody.
func (a access) permissions() *server.Permissions {
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: a.says, Deny: a.not},
		Subscribe: &server.SubjectPermission{Allow: append([]string{"_INBOX.>"}, a.hears...)},
	}
}

// export offers the subjects of the table to other accounts. An account has those that share imports into it, no others.
func export(from *server.Account) error {
	for _, a := range []access{clientAccess, anyExecutor} {
		for _, subject := range a.says {
			if err := from.AddServiceExport(subject, nil); err != nil {
				return fmt.Errorf("export %s: %w", subject, err)
			}
		}
		for _, subject := range a.hears {
			if err := from.AddStreamExport(subject, nil); err != nil {
				return fmt.Errorf("export %s: %w", subject, err)
			}
		}
	}
	return nil
}

// share imports the subjects into the account of a user.
func (a access) share(from, to *server.Account) error {
	for _, subject := range a.says {
		if err := to.AddServiceImport(from, subject, subject); err != nil {
			return fmt.Errorf("import %s: %w", subject, err)
		}
	}
	for _, subject := range a.hears {
		if err := to.AddStreamImport(from, subject, ""); err != nil {
			return fmt.Errorf("import %s: %w", subject, err)
		}
	}
	return nil
}

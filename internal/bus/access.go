package bus

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// access is what a user's account shares with the controller's.
type access struct {
	says  []string // subjects it may publish to, for an answer or not
	hears []string // subjects it is told of
}

// executorAccess is that of an executor, given as a token; "*" for all of them.
func executorAccess(executor string) access {
	box := "x-" + executor
	if executor == "*" {
		box = "*"
	}
	return access{
		says: []string{
			"$KV.status." + executor,
			"report." + executor + ".*",
			"log." + executor + ".*",
			directGet + "KV_orders.$KV.orders." + executor,
			directGet + "OBJ_boxes.box." + box + ".>",
		},
		hears: []string{"now.$KV.orders." + executor},
	}
}

// clientAccess is that of command lines.
var clientAccess = access{
	says: []string{
		"control",
		"obj.graphs.>",
		directGet + "KV_record", directGet + "KV_record.>",
		directGet + "LOG", directGet + "LOG.>",
		directGet + "OBJ_graphs.>",
		directGet + "OBJ_boxes.>",
	},
	hears: []string{"now.$KV.record.*", "now.log.*.*"},
}

// accessOf returns the access of a user that is not the controller.
func accessOf(user string) (access, bool) {
	if user == Client {
		return clientAccess, true
	}
	executor, ok := strings.CutPrefix(user, "x-")
	if !ok || executor == "" || strings.ContainsAny(executor, ".*> \t\r\n") {
		return access{}, false
	}
	return executorAccess(executor), true
}

// permissions let a misguided client be told, and logged, instead of speaking to nobody.
func (a access) permissions() *server.Permissions {
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: a.says},
		Subscribe: &server.SubjectPermission{Allow: append([]string{"_INBOX.>"}, a.hears...)},
	}
}

// export offers the subjects of the table to other accounts.
func export(from *server.Account) error {
	for _, a := range []access{clientAccess, executorAccess("*")} {
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

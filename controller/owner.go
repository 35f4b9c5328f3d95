package controller

import (
	"fmt"

	"tensile/wire"
)

// checkOwner returns why a user may not change the job of a name. nil: the user may, or there is no such job. The user
// "" is the administrator, who may change everything.
func (m *Machine) checkOwner(user, name string) error {
	j := m.findJob(name)
	if j == nil || user == "" || user == j.record.Spec.Owner {
		return nil
	}
	if owner := j.record.Spec.Owner; owner != "" {
		return fmt.Errorf("job %s belongs to %s: ask %s or an administrator", name, owner, owner)
	}
	return fmt.Errorf("job %s belongs to an administrator: ask one", name)
}

// administrative are the requests that only an administrator may make, with the words for what they do.
var administrative = map[wire.Verb]string{
	wire.SetBudget: "change the budget",
	wire.Drain:     "drain a device",
	wire.SetShare:  "change the share of a tenant",
	wire.Forget:    "say that the process of an executor has ended",
}

package controller

import (
	"fmt"

	"tensile/wire"
)

// checkOwner returns why a user may not do something with the job of a name; nil: the user may, or there is no such
// job. "" is the administrator, who may do everything.
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

// administrative are the requests that are an administrator's alone.
var administrative = map[wire.Verb]string{
	wire.SetBudget: "change the budget",
	wire.Drain:     "drain a device",
	wire.SetShare:  "change the share of a tenant",
	wire.Forget:    "say that the process of an executor has ended",
}

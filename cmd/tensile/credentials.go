package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"tensile/wire"
	"tensile/wire/bus"
)

// credentialsFlags say whose credentials are meant.
type credentialsFlags struct {
	state, address, output     string
	user, revoke, list, asJSON bool
	servers                    serverFlags // External NATS servers.
	permissions                bool
}

func credentialsCommand() *cobra.Command {
	var f credentialsFlags
	c := &cobra.Command{
		Use:   "credentials NAME",
		Short: "Create, list or revoke credentials of remote executors and users",
		Long: `Write the credentials with which an executor called NAME joins the controller of the state folder. They
only allow it to read its own assignments and to report on its own jobs. With --user they are for a
person called NAME, who may submit jobs and may stop, park and re-prioritize only those; commands that
use the state folder act as administrator. Whoever has the file is that executor or user: keep it as
safe as a password.

--revoke invalidates them at once: a controller closes the connections made with them. NAME can be
given new ones afterwards. An executor whose credentials were revoked keeps training, but is ignored:
end its process too. --list lists all issued credentials.

If the controller uses external NATS servers, they authenticate NAME and decide what NAME may do:
--permissions prints the permissions to configure there, and --nats-auth names the login that is put
into the file.`,
		Example: `  tensile controller credentials lab2 --output lab2.json
  tensile controller credentials ada --user
  tensile controller credentials ada --user --revoke
  tensile controller credentials lab2 --nats tls://a:4222,tls://b:4222 --nats-auth lab2.creds`,
		Args: func(c *cobra.Command, args []string) error {
			if f.list {
				return noArguments(c, args)
			}
			return needOne("NAME")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			switch {
			case f.permissions:
				return f.writePermissions(args[0], c.OutOrStdout())
			case f.list:
				return f.writeList(c.OutOrStdout())
			case f.revoke:
				return f.withdraw(args[0], c.OutOrStdout())
			}
			return f.issue(args[0], c.OutOrStdout())
		},
	}
	registerState(c, &f.state)
	c.Flags().BoolVar(&f.user, "user", false, "create credentials for a user instead of an executor")
	c.Flags().BoolVar(&f.revoke, "revoke", false, "revoke the credentials of NAME")
	c.Flags().BoolVar(&f.list, "list", false, "list issued credentials")
	c.Flags().BoolVar(&f.asJSON, "json", false, "with --list: print a single JSON document")
	c.Flags().StringVar(&f.address, "nats", "",
		"controller address as seen by the executor or user, or addresses of external NATS servers (default: the "+
			"address on this machine)")
	f.servers.register(c)
	c.Flags().BoolVar(&f.permissions, "permissions", false,
		"print the permissions that NAME needs on external NATS servers")
	c.Flags().StringVar(&f.output, "output", "", "output file; overwritten if it exists (default: NAME.json)")
	return c
}

func (f *credentialsFlags) check() error {
	switch {
	case f.list && (f.user || f.revoke || f.address != "" || f.output != ""):
		return errors.New("--list lists all: leave the other flags out")
	case f.revoke && (f.address != "" || f.output != ""):
		return errors.New("--revoke writes no file: leave --nats and --output out")
	case f.permissions && (f.list || f.revoke || f.address != "" || f.output != "" || f.servers.auth != ""):
		return errors.New("--permissions prints what NAME may: leave all flags but --user out")
	case f.asJSON && !f.list:
		return errors.New("--json is for --list: leave it out")
	}
	return checkState(f.state)
}

// named returns the user of the bus that a name stands for.
func (f *credentialsFlags) named(name string) (user, what string, err error) {
	if err := wire.CheckName(name); err != nil {
		return "", "", err
	}
	kind := "an executor"
	if f.user {
		kind = "a user"
	}
	if strings.ContainsFunc(name, unicode.IsSpace) {
		return "", "", fmt.Errorf("the name %q: %s's name has no blanks", name, kind)
	}
	if f.user {
		return bus.User(name), "user " + name, nil
	}
	if wire.Owned(name) {
		return "", "", fmt.Errorf("the name %s: x and a number are the executors that the controller starts itself; "+
			"give another name", name)
	}
	return bus.Executor(name), "executor " + name, nil
}

func (f *credentialsFlags) issue(name string, out io.Writer) error {
	user, what, err := f.named(name)
	if err != nil {
		return err
	}
	client, err := bus.ReadCredentials(filepath.Join(f.state, clientFile))
	if f.servers.auth != "" || f.servers.ca != "" || strings.Contains(f.address, ",") || err == nil && client.External {
		return f.issueExternal(name, user, what, client, out)
	}
	if err != nil {
		return noController(f.state, err)
	}
	if f.address != "" {
		if err := checkAddress(f.address, client); err != nil {
			return err
		}
	}
	credentials, err := bus.Issue(f.state, client, user)
	if err != nil {
		return err
	}
	credentials.URL = cmp.Or(f.address, credentials.URL)
	path := cmp.Or(f.output, name+".json")
	if err := bus.WriteCredentials(path, credentials); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: credentials of %s\n", path, what)
	return nil
}

// issueExternal writes credentials for external servers.
func (f *credentialsFlags) issueExternal(name, user, what string, client bus.Credentials, out io.Writer) error {
	f.servers.urls = cmp.Or(f.address, client.URL)
	if f.servers.urls == "" || f.address == "" && !client.External {
		return errors.New("--nats-auth and --nats-ca are for external NATS servers: name these with --nats")
	}
	credentials, err := f.servers.credentials(user)
	if err != nil {
		return err
	}
	if f.servers.auth == "" && client.Login != (bus.Login{}) {
		return fmt.Errorf("the controller uses external NATS servers: make a user for %s there, who may do what "+
			"tensile controller credentials %s --permissions prints, and name its login with --nats-auth", what, name)
	}
	credentials.CA = cmp.Or(credentials.CA, client.CA)
	path := cmp.Or(f.output, name+".json")
	if err := bus.WriteCredentials(path, credentials); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: credentials of %s\n", path, what)
	return nil
}

// writePermissions prints the permissions that a user needs, in the format of the configuration of nats-server.
func (f *credentialsFlags) writePermissions(name string, out io.Writer) error {
	user, what, err := f.named(name)
	if err != nil {
		return err
	}
	publish, deny, subscribe, _ := bus.ExternalAccess(user)
	list := func(subjects []string) string {
		quoted := make([]string, len(subjects))
		for i, s := range subjects {
			quoted[i] = strconv.Quote(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	fmt.Fprintf(out, "# %s of Tensile\npermissions {\n  publish { allow: %s", what, list(publish))
	if len(deny) > 0 {
		fmt.Fprintf(out, ", deny: %s", list(deny))
	}
	_, err = fmt.Fprintf(out, " }\n  subscribe { allow: %s }\n}\n", list(subscribe))
	return err
}

// withdraw revokes credentials. No controller has to run for that.
func (f *credentialsFlags) withdraw(name string, out io.Writer) error {
	user, what, err := f.named(name)
	if err != nil {
		return err
	}
	if client, err := bus.ReadCredentials(filepath.Join(f.state, clientFile)); err == nil && client.External {
		return fmt.Errorf("the controller uses external NATS servers: remove the user of %s there", what)
	}
	err = bus.Revoke(f.state, user)
	switch {
	case errors.Is(err, bus.ErrNotIssued):
		return fmt.Errorf("%s has no credentials: tensile controller credentials --list lists who has some", what)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no controller ever ran on the state folder %s: name another with --state", f.state)
	case err != nil:
		return err
	}
	fmt.Fprintf(out, "the credentials of %s are revoked\n", what)
	return nil
}

// listedCredentials is a line of the list.
type listedCredentials struct {
	Name    string    `json:"name"`
	Kind    string    `json:"kind"` // user or executor
	Valid   bool      `json:"valid"`
	Issued  time.Time `json:"issued"`
	Revoked int       `json:"revoked"` // how often
}

func (f *credentialsFlags) writeList(out io.Writer) error {
	issues, err := bus.Issues(f.state)
	if err != nil {
		return err
	}
	list := []listedCredentials{}
	for _, i := range issues {
		name, person, _ := bus.UserName(i.User)
		l := listedCredentials{Name: name, Kind: "executor", Valid: i.Valid, Issued: i.At, Revoked: i.Revoked}
		if person {
			l.Kind = "user"
		}
		list = append(list, l)
	}
	if f.asJSON {
		return printJSON(out, list)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tKIND\tISSUED\tSTATE")
	for _, l := range list {
		state := "valid"
		if !l.Valid {
			state = "revoked"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.Name, l.Kind, l.Issued.Local().Format(time.DateTime), state)
	}
	return w.Flush()
}

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tensile/internal/web"
)

// noPage is the --http of a controller that serves no page.
const noPage = "off"

// page is what a controller serves over HTTP; its server is nil where that is nothing.
type page struct{ server *web.Server }

// openPage listens. Handlers are mounted on the server: those that show something with web.View, those that change
// something with web.Steer.
func (f *controllerFlags) openPage(log func(string)) (*page, error) {
	if f.http == noPage {
		return &page{}, nil
	}
	server, err := web.Start(web.Options{Dir: f.state, Listen: f.http, Log: log})
	if err != nil {
		return nil, err
	}
	return &page{server}, nil
}

// ready says where the page is.
func (p *page) ready(log func(string)) {
	if p.server != nil {
		log("page at " + p.server.URL(web.View))
	}
}

func (p *page) close() {
	if p.server != nil {
		p.server.Close()
	}
}

func pageCommand() *cobra.Command {
	var state string
	var steer bool
	c := &cobra.Command{
		Use:   "page",
		Short: "Print where a browser finds the page of a controller",
		Long: `Print the URL of the page of a controller of this machine, with the token that lets a
browser see it. It stays the same when the controller is started again on the same state folder. With
--steer the token allows more: to stop, park and resume jobs, and to set priorities and the budget.
Whoever has the URL can do so, as an administrator.`,
		Args:    noArguments,
		Example: "  tensile page\n  ssh -L 8080:127.0.0.1:PORT gpu-host   # the page of another machine, at localhost:8080",
		RunE: func(c *cobra.Command, _ []string) error {
			return printPage(c.OutOrStdout(), state, steer)
		},
	}
	registerState(c, &state)
	c.Flags().BoolVar(&steer, "steer", false, "with the token that allows to change something")
	return c
}

func printPage(out io.Writer, state string, steer bool) error {
	if err := checkState(state); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(state, clientFile)); err != nil { // which is there while a controller runs
		return noController(state, err)
	}
	kept, err := web.Read(state)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the controller of the state folder %s serves no page: start it without --http off", state)
	} else if err != nil {
		return err
	}
	access := web.View
	if steer {
		access = web.Steer
	}
	_, err = fmt.Fprintln(out, kept.URL(access))
	return err
}

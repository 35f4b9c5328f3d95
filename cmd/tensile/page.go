package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"tensile/controller"
	"tensile/observe/metrics"
	pages "tensile/observe/page"
	"tensile/observe/web"
	"tensile/wire/bus"
)

// noPage is the --http of a controller that serves no page.
const noPage = "off"

// page is what a controller serves over HTTP; its server is nil where that is nothing.
type page struct {
	server *web.Server
	end    func()
}

// openPage takes the page's address. Whoever asks there is answered once the page is mounted.
func (f *controllerFlags) openPage(log func(string)) (*page, error) {
	if f.http == noPage {
		return &page{}, nil
	}
	server, err := web.Listen(web.Options{Dir: f.state, Listen: f.http, Log: log})
	if err != nil {
		return nil, err
	}
	return &page{server: server, end: func() {}}, nil
}

// mount has all of the page show a controller with these options, which it completes. Handlers that show something are
// mounted with web.View, those that change something with web.Steer.
func (p *page) mount(ctx context.Context, server hub, f *controllerFlags, o *controller.Options) error {
	if p.server == nil {
		return nil
	}
	p.measure(f.plan.device, f.public, o)
	if err := p.show(ctx, server, o); err != nil {
		return err
	}
	p.server.Serve()
	return nil
}

// show mounts the page that people see, of a controller with these options, which it completes.
func (p *page) show(ctx context.Context, server hub, o *controller.Options) error {
	conn, err := server.Connect(ctx, bus.ConnOptions{Log: lines(o.Log, slog.LevelWarn)})
	if err != nil {
		return err
	}
	shown := pages.New(conn)
	told := o.Events
	o.Events = func(e controller.Event) {
		if told != nil { // whoever else wants to know
			told(e)
		}
		shown.Changed()
	}
	o.Reports = shown.Report
	shown.Mount(p.server)
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { shown.Run(ctx) })
	p.end = func() {
		cancel()
		done.Wait()
		conn.Close()
	}
	return nil
}

// ready says where the page is. The token is for who sits at the terminal, if there is one, and for no log, which
// others may read: tensile controller page reads it from the state folder, as its owner may.
func (p *page) ready(log func(string), state string, terminal io.Writer) {
	if p.server == nil {
		return
	}
	log(fmt.Sprintf("page at %s, for who has a token: tensile controller page --state %s", p.server.URL(web.Open),
		shellWord(state)))
	if terminal != nil {
		fmt.Fprintln(terminal, p.server.URL(web.View))
	}
}

// metricsPath is where metrics are.
const metricsPath = "/metrics"

// measure serves metrics of a controller of a device, to everyone or to those who have a token.
func (p *page) measure(device string, open bool, o *controller.Options) {
	o.Views = new(controller.Views)
	m := metrics.New(device, version, o.Views)
	o.Waited, o.PlanTook, o.Events = m.ObserveLag, m.ObservePlanning, m.CountEvent
	needs := web.View
	if open {
		needs = web.Open
	}
	p.server.Handle("GET "+metricsPath, needs, m.Handler())
}

func (p *page) close() {
	if p.server != nil {
		p.server.Close()
		p.end()
	}
}

func pageCommand() *cobra.Command {
	var state string
	var steer bool
	c := &cobra.Command{
		Use:   "page",
		Short: "Print the URL of a controller's web page",
		Long: `Print the URL of the web page of a controller on this machine, with the token that a browser needs to
view it. The URL stays the same when the controller is restarted on the same state folder. With --steer,
the token also allows administrator actions: stop, park and resume jobs, and set priorities and the
budget. Anyone who has that URL can do so.`,
		Args: noArguments,
		Example: "  tensile controller page\n" +
			"  ssh -L 8080:127.0.0.1:PORT gpu-host   # the page of another machine, at localhost:8080",
		RunE: func(c *cobra.Command, _ []string) error {
			return printPage(c.OutOrStdout(), state, steer)
		},
	}
	registerState(c, &state)
	c.Flags().BoolVar(&steer, "steer", false, "include the token that allows changes")
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

package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tensile/observe/web"
)

// eyes are viewers of a controller's page and a scraper of its metrics, which read what they are sent.
type eyes struct {
	kept    web.Kept
	failed  func(error) // is told that one of them cannot go on
	leave   []context.CancelFunc
	done    sync.WaitGroup
	events  atomic.Int64 // read by viewers
	scrapes atomic.Int64
}

// get asks the controller's server.
func (e *eyes) get(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	at := url.URL{Scheme: "http", Host: e.kept.Address, Path: path, RawQuery: query.Encode()}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Authorization", "Bearer "+e.kept.View)
	r, err := http.DefaultClient.Do(q)
	if err == nil && r.StatusCode != http.StatusOK {
		r.Body.Close()
		err = fmt.Errorf("%s answers %s", path, r.Status)
	}
	return r, err
}

// look follows the page, of a job if one is named. It returns when it has been told of the jobs.
func (e *eyes) look(ctx context.Context, job string) error {
	query := url.Values{}
	if job != "" {
		query.Set("job", job)
	}
	ctx, cancel := context.WithCancel(ctx)
	e.leave = append(e.leave, cancel)
	r, err := e.get(ctx, "/events", query)
	if err != nil {
		return err
	}
	seen := make(chan struct{}, 1)
	e.done.Go(func() {
		defer r.Body.Close()
		lines := bufio.NewReader(r.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				if ctx.Err() == nil {
					e.failed(fmt.Errorf("a viewer's stream has ended: %w", err))
				}
				return
			}
			if strings.HasPrefix(line, "event: ") {
				e.events.Add(1)
			}
			if strings.HasPrefix(line, "event: now") {
				select {
				case seen <- struct{}{}:
				default:
				}
			}
		}
	})
	select {
	case <-seen:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// scrape asks for metrics now and at times.
func (e *eyes) scrape(ctx context.Context, every time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	e.leave = append(e.leave, cancel)
	e.done.Go(func() {
		next := time.NewTicker(every)
		defer next.Stop()
		for {
			r, err := e.get(ctx, "/metrics", nil)
			if err == nil {
				_, err = io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
			if ctx.Err() != nil {
				return
			} else if err != nil {
				e.failed(fmt.Errorf("scrape the metrics: %w", err))
				return
			}
			e.scrapes.Add(1)
			select {
			case <-next.C:
			case <-ctx.Done():
				return
			}
		}
	})
}

// close has all of them leave.
func (e *eyes) close() {
	for _, leave := range e.leave {
		leave()
	}
	e.done.Wait()
}

package metrics

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tensile/controller"
)

// Metrics are those of one controller. Any goroutine may call its methods.
type Metrics struct {
	registry         *prometheus.Registry
	planning, waited prometheus.Histogram
	events           *prometheus.CounterVec
}

// New returns the metrics of a controller of a device, by name, of which views show what it knows. version is that of
// the program.
func New(device, version string, views *controller.Views) *Metrics {
	return of(device, version, views.Read)
}

func of(device, version string, now func(context.Context) (controller.View, error)) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(),
		planning: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tensile_controller_planning_seconds",
			Help:    "How long it took to make plans, for all jobs together, with their proofs.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10)}), // 1 ms to 4.4 min
		waited: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tensile_controller_message_lag_seconds",
			Help:    "How long messages and requests waited in the controller until it took them.",
			Buckets: prometheus.ExponentialBuckets(0.00001, 10, 7)}), // 10 us to 10 s
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tensile_controller_events_total",
			Help: "What the controller's log has told, by kind."}, []string{"kind"})}
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "tensile_build_info", Help: "1: the release of tensile.",
		ConstLabels: prometheus.Labels{"version": version}})
	info.Set(1)
	ours := prometheus.WrapRegistererWith(prometheus.Labels{"device": device}, m.registry)
	m.registry.MustRegister(newCollector(device, now))
	ours.MustRegister(m.planning, m.waited, m.events, info)
	m.registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector())
	return m
}

// Planned is for Options.Planned of a controller.
func (m *Metrics) Planned(took time.Duration) { m.planning.Observe(seconds(took)) }

// Waited is for Options.Waited of a controller.
func (m *Metrics) Waited(lag time.Duration) { m.waited.Observe(seconds(lag)) }

// Event is for Options.Events of a controller.
func (m *Metrics) Event(e controller.Event) { m.events.WithLabelValues(string(e.Kind)).Inc() }

// Handler answers GET requests with all metrics, in the form that the scraper asks for.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

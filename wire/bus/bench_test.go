package bus

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"tensile/wire"
)

// links are the ways to connect to a server.
var links = []struct {
	name string
	join func(b *testing.B, user string) (s *Server, c *Conn)
}{
	{"process", func(b *testing.B, user string) (*Server, *Conn) {
		s := start(b, Options{})
		return s, inProcess(b, s, user)
	}},
	{"tcp", func(b *testing.B, user string) (*Server, *Conn) {
		s := listening(b)
		return s, join(b, s, user)
	}},
	{"tls", func(b *testing.B, user string) (*Server, *Conn) {
		s := start(b, Options{Listen: "127.0.0.1:0", TLS: true})
		return s, join(b, s, user)
	}},
}

func inProcess(b *testing.B, s *Server, user string) *Conn {
	to := s.Credentials(user)
	to.URL = ""
	c, err := connect(context.Background(), to, ConnOptions{}, s, connectTimeout)
	must(b, err)
	b.Cleanup(func() { c.Close() })
	return c
}

// BenchmarkPutWatch is from a controller's Put of orders to the callback of the executor that watches them.
func BenchmarkPutWatch(b *testing.B) {
	for _, link := range links {
		for _, size := range []int{100, 100_000} {
			b.Run(fmt.Sprintf("link=%s/bytes=%d", link.name, size), func(b *testing.B) {
				s, x := link.join(b, Executor("e1"))
				ctx, c, value, got := context.Background(), rule(b, s), make([]byte, size), make(chan bool, 1)
				_, err := x.Watch(ctx, "orders.e1", func(string, []byte) { got <- true })
				must(b, err)
				b.SetBytes(int64(size))
				for b.Loop() {
					must(b, c.Put(ctx, "orders.e1", value))
					<-got
				}
			})
		}
	}
}

// BenchmarkAsk is a request of a command line and its answer.
func BenchmarkAsk(b *testing.B) {
	for _, link := range links {
		b.Run("link="+link.name, func(b *testing.B) {
			s, client := link.join(b, Client)
			_, err := rule(b, s).Serve(wire.ControlSubject,
				func(_ string, data []byte, reply func([]byte)) { reply(data) })
			must(b, err)
			for b.Loop() {
				if _, err := client.Ask(context.Background(), wire.ControlSubject, []byte("x")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLoad is an executor's Load of a layout.
func BenchmarkLoad(b *testing.B) {
	for _, size := range []int{10_000, 4 << 20} {
		b.Run(fmt.Sprintf("link=tcp/bytes=%d", size), func(b *testing.B) {
			s := listening(b)
			x, ctx := join(b, s, Executor("e1")), context.Background()
			must(b, rule(b, s).Store(ctx, wire.Bucket("e1"), "layout", make([]byte, size)))
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := x.Load(ctx, wire.Bucket("e1"), "layout"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReports is a report of one of many executors until the controller has it, and what an idle executor takes of
// the memory of a process that holds both ends.
func BenchmarkReports(b *testing.B) {
	for _, executors := range []int{1, 1000} {
		b.Run(fmt.Sprintf("link=process/executors=%d", executors), func(b *testing.B) {
			s, ctx := start(b, Options{}), context.Background()
			reports := make(chan bool, 1<<16)
			_, err := rule(b, s).Subscribe("report.*.*", func(string, []byte) { reports <- true })
			must(b, err)
			before := heap()
			conns, subjects := make([]*Conn, executors), make([]string, executors)
			for i := range conns {
				name := fmt.Sprintf("e%d", i)
				conns[i], subjects[i] = inProcess(b, s, Executor(name)), wire.ReportSubject(name, "job")
				_, err := conns[i].Watch(ctx, wire.OrdersKey(name), func(string, []byte) {})
				must(b, err)
				must(b, conns[i].Put(ctx, wire.StatusKey(name), []byte("idle")))
			}
			each, report, sent := float64(heap()-before)/float64(executors), make([]byte, 1000), 0
			for b.Loop() {
				must(b, conns[sent%executors].Publish(subjects[sent%executors], report))
				if sent++; sent > 1000 {
					<-reports
				}
			}
			for range min(sent, 1000) {
				<-reports
			}
			b.ReportMetric(each/1024, "KiB/executor")
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

package log

import (
	"io"
	stdlog "log"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// What a query costs in the wire lane: without log, with a sample, and with a line for each.
func BenchmarkServeWire(b *testing.B) {
	stdlog.SetOutput(io.Discard)
	stdlog.SetFlags(0) // as the program has it
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	packet, err := m.Pack()
	if err != nil {
		b.Fatal(err)
	}
	for _, bc := range []struct {
		name   string
		sample int
	}{{"none", 0}, {"sample 100", 100}, {"all", 1}} {
		b.Run(bc.name, func(b *testing.B) {
			rules := []Rule{{NameScope: ".", Format: DefaultLogFormat, Class: classes(response.All)}}
			var h plugin.WireHandler = same{}
			if bc.sample > 0 {
				h = Logger{Next: same{}, Rules: rules, ready: ready(rules, []part{{sample: bc.sample}})}
			}
			loop := eventloop.New()
			defer loop.Close()
			q, w, buf := new(wire.Query), new(wire.Reply), make([]byte, 512)
			b.ReportAllocs()
			const batch = 16
			for i := 0; b.Loop(); i++ {
				if i%batch == 0 {
					loop.Done(0)
				}
				q.Parse(packet)
				q.Arrival = time.Now()
				q.SetLoop(loop)
				w.Reset(buf)
				h.ServeWire(b.Context(), w, q)
			}
			loop.Done(0)
		})
	}
}

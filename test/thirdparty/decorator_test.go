package thirdparty

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// tally is no handler: it counts what a listener sends over UDP.
var tally atomic.Int32

// kept is the replies as the decorator got them, and copies of them.
var kept struct {
	sync.Mutex
	all, copies [][]byte
}

type counter struct{ dns.Writer }

func (c counter) Write(b []byte) (int, error) {
	tally.Add(1)
	kept.Lock()
	kept.all, kept.copies = append(kept.all, b), append(kept.copies, bytes.Clone(b))
	kept.Unlock()
	return c.Writer.Write(b)
}

func init() {
	add("tally", "debug", func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).UDPDecorateWriterFunc = func(*dnsserver.Server) dns.DecorateWriter {
			return func(w dns.Writer) dns.Writer { return counter{w} }
		}
		return nil
	})
}

// A decorator sees each reply over UDP, whoever made it, and none over TCP.
func TestDecorator(t *testing.T) {
	inBothLanes(t, "example.org:0 {\nbind 127.0.0.1\ntally\nhosts {\n192.0.2.1 www.example.org\n}\n}\n", func(t *testing.T, s *server) {
		before := tally.Load()
		s.exchange("udp", new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
		s.exchange("udp", new(dns.Msg).SetQuestion("www.example.net.", dns.TypeA))
		s.exchange("udp", new(dns.Msg).SetUpdate("example.org."))
		s.exchange("tcp", new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
		if got := tally.Load() - before; got != 3 {
			t.Errorf("%d replies were decorated, want 3", got)
		}
	})
}

// A decorator may keep replies, such as for somebody who looks at them later: miekg/dns packs each into memory of its own.
func TestDecoratorKeeps(t *testing.T) {
	inBothLanes(t, "example.org:0 {\nbind 127.0.0.1\ntally\nhosts {\n192.0.2.1 a.example.org b.example.org c.example.org\n}\n}\n", func(t *testing.T, s *server) {
		for i := range 30 {
			s.exchange("udp", new(dns.Msg).SetQuestion(string(rune('a'+i%3))+".example.org.", dns.TypeA))
		}
		kept.Lock()
		defer kept.Unlock()
		if len(kept.all) < 30 {
			t.Errorf("%d replies are kept", len(kept.all))
		}
		for i, b := range kept.all {
			if !bytes.Equal(b, kept.copies[i]) {
				t.Fatalf("reply %d was\n%x\nis\n%x", i, kept.copies[i], b)
			}
		}
	})
}

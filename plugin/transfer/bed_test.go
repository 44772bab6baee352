package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// version is example.org. with that serial and some hosts.
func version[N int | uint32](t testing.TB, serial N, hosts ...string) *zone.Zone {
	t.Helper()
	b := zone.NewBuilder(wire.MustName("example.org"), t.Logf)
	rrs := []string{fmt.Sprintf("example.org. 300 IN SOA ns.example.org. hostmaster.example.org. %d 7200 3600 1209600 300", serial), "example.org. 300 IN NS ns.example.org."}
	for _, h := range hosts {
		rrs = append(rrs, h+".example.org. 300 IN A 192.0.2.1")
	}
	for _, text := range rrs {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.AddRR(rr); err != nil {
			t.Fatal(err)
		}
	}
	z, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// source has one zone.
type source struct {
	v   *zone.Zone
	err error
}

func (s *source) Version(name string) (*zone.Zone, error) {
	if name != "example.org." {
		return nil, ErrNotAuthoritative
	}
	return s.v, s.err
}

func (s *source) Transfer(string, uint32) (<-chan []dns.RR, error) {
	panic("a Source is asked for Version")
}

// channel is a Transferer that knows no packed zones.
type channel struct {
	rrs  []dns.RR
	each int // records in a batch
	read chan struct{}
}

func (c *channel) Transfer(name string, serial uint32) (<-chan []dns.RR, error) {
	if name != "example.net." {
		return nil, ErrNotAuthoritative
	}
	if serial == 13 {
		return nil, errors.New("bad luck")
	}
	ch := make(chan []dns.RR)
	go func() {
		defer close(c.read)
		defer close(ch)
		if serial >= 7 {
			ch <- c.rrs[:1]
			return
		}
		for rrs := c.rrs; len(rrs) > 0; {
			n := min(c.each, len(rrs))
			ch <- rrs[:n]
			rrs = rrs[n:]
		}
	}()
	return ch, nil
}

// client is a writer that keeps all that is written.
type client struct {
	test.ResponseWriter
	messages []*dns.Msg
	taken    int // of these, as they lay in a lane
	fail     int // from which write on
}

func (c *client) WriteMsg(m *dns.Msg) error {
	if c.fail > 0 && len(c.messages) >= c.fail {
		return errors.New("connection reset")
	}
	p, err := m.Pack()
	if err != nil {
		return err
	}
	_, err = c.Write(p)
	return err
}

// TakeReply is that of a server's writer: it takes what is not signed.
func (c *client) TakeReply(w *wire.Reply, r *dns.Msg) (bool, error) {
	if r.IsTsig() != nil {
		return false, nil
	}
	end := wire.EndFor(r, wire.MaxMessage)
	if opt := r.IsEdns0(); opt != nil {
		end.OPT, end.Size = true, 1232
	}
	_, err := c.Write(w.End(end))
	c.taken++
	return true, err
}

func (c *client) Write(p []byte) (int, error) {
	if c.fail > 0 && len(c.messages) >= c.fail {
		return 0, errors.New("connection reset")
	}
	m := new(dns.Msg)
	if err := m.Unpack(p); err != nil {
		return 0, err
	}
	c.messages = append(c.messages, m)
	return len(p), nil
}

// transferOf asks over TCP, and gives what was written, record by record in short, and what ServeDNS returned.
func transferOf(t *testing.T, x *Transfer, c *client, m *dns.Msg) string {
	t.Helper()
	rcode, err := x.ServeDNS(context.Background(), c, m)
	var got []string
	for i, reply := range c.messages {
		if reply.Id != m.Id || !reply.Response || !reply.Authoritative || len(reply.Question) != 1 || reply.Question[0] != m.Question[0] || reply.Rcode != 0 {
			t.Errorf("message %d: %v", i, reply.MsgHdr)
		}
		if (reply.IsEdns0() != nil) != (m.IsEdns0() != nil && i == 0) {
			t.Errorf("message %d: OPT %v", i, reply.IsEdns0())
		}
		for _, rr := range reply.Answer {
			s := strings.TrimSuffix(rr.Header().Name, ".example.org.") + "/" + dns.Type(rr.Header().Rrtype).String()
			if soa, ok := rr.(*dns.SOA); ok {
				s = fmt.Sprint("SOA", soa.Serial)
			}
			got = append(got, s)
		}
	}
	s := strings.Join(got, " ")
	if rcode != 0 || err != nil {
		s += fmt.Sprintf(" %s %v", dns.RcodeToString[rcode], err)
	}
	return strings.TrimSpace(s)
}

func axfr(name string) *dns.Msg { return new(dns.Msg).SetAxfr(name) }

func ixfr(serial uint32) *dns.Msg {
	return new(dns.Msg).SetIxfr("example.org.", serial, "ns.example.org.", "hostmaster.example.org.")
}

// setupOf is the handler of some stanzas.
func setupOf(t *testing.T, input string) *Transfer {
	t.Helper()
	c := caddy.NewTestController("dns", input)
	c.ServerBlockKeys = []string{"."}
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	return dnsserver.GetConfig(c).Plugin[0](test.NextHandler(dns.RcodeNotZone, nil)).(*Transfer)
}

func tcp() *client { return &client{ResponseWriter: test.ResponseWriter{TCP: true}} }

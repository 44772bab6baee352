package thirdparty

import (
	"context"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// mask is a middleware: it has the next plugin answer a nonwriter, and writes what it made of that. It asks again, for
// another name, if there was nothing.
type mask struct{ Next plugin.Handler }

func init() {
	add("mask", "cache", func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return mask{next} })
		return nil
	})
}

func (m mask) Name() string { return "mask" }

func (m mask) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	nw := nonwriter.New(w)
	rcode, err := plugin.NextOrFailure(m.Name(), m.Next, ctx, nw, r)
	if err != nil || plugin.ClientWrite(rcode) && nw.Msg == nil {
		return rcode, err
	}
	if nw.Msg != nil && nw.Msg.Rcode == dns.RcodeNameError {
		state := request.Request{W: w, Req: r}
		other := state.NewWithQuestion("other.example.org.", state.QType())
		nw = nonwriter.New(w)
		if rcode, err = plugin.NextOrFailure(m.Name(), m.Next, ctx, nw, other.Req); err != nil {
			return rcode, err
		}
	}
	if nw.Msg == nil {
		return rcode, nil // of an error; nothing was written
	}
	reply := nw.Msg
	reply.Question, reply.Id = r.Question, r.Id
	for _, rr := range reply.Answer {
		rr.Header().Name = r.Question[0].Name
		if a, ok := rr.(*dns.A); ok {
			a.A[len(a.A)-1]++
		}
	}
	reply.Extra = append(reply.Extra, test.TXT("masked. 0 IN TXT yes"))
	w.WriteMsg(reply)
	return reply.Rcode, nil
}

// The plugins below are called as often as the middleware likes, and what it changes of a reply stays in that reply.
func TestMiddleware(t *testing.T) {
	below := "almanac example.org {\nhost www.example.org 192.0.2.1\nhost other.example.org 192.0.2.11\n}"
	for name, lines := range map[string]string{"bare": "mask\n", "above cache": "metadata\nlog\nerrors\nmask\ncache 60\n"} {
		t.Run(name, func(t *testing.T) {
			inBothLanes(t, block(lines+below), func(t *testing.T, s *server) {
				for range 3 {
					s.expect("www.example.org.", dns.TypeA, "NOERROR A 192.0.2.2 extra TXT \"yes\"")
					s.expect("nope.example.org.", dns.TypeA, "NOERROR A 192.0.2.12 extra TXT \"yes\"")
				}
				s.expect("www.example.com.", dns.TypeA, "SERVFAIL") // nobody is below who answers
			})
		})
	}
}

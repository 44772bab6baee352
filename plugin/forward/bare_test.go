package forward

import (
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// bare answers with a header only.
func bare(rcode int) dns.HandlerFunc {
	return func(w dns.ResponseWriter, r *dns.Msg) {
		b, _ := (&dns.Msg{MsgHdr: dns.MsgHdr{Id: r.Id, Response: true, Rcode: rcode}}).Pack()
		w.Write(b)
	}
}

// A bare error is handled as if its question stood in it, in both lanes and over either protocol.
func TestBareErrors(t *testing.T) {
	good := upstream(t, says("192.0.2.1"))
	for name, rcode := range map[string]int{"FORMERR": 1, "SERVFAIL": 2, "NOTIMP": 4, "REFUSED": 5} {
		addr := upstream(t, bare(rcode))
		for corefile, want := range map[string]int{
			"forward . " + addr:                      rcode,
			"forward . " + addr + " {\nforce_tcp\n}": rcode,
			"forward . " + addr + " " + good + " {\npolicy sequential\nfailover " + name + "\n}":    0,
			"forward . " + addr + " {\nnext " + name + "\n}\nforward . " + good:                     0,
			"forward . " + addr + " " + good + " {\npolicy sequential\nmax_connect_attempts 1\n}\n": rcode,
		} {
			f := configured(t, corefile)
			for lane, ask := range map[string]func(r *dns.Msg) *dns.Msg{
				"message": func(r *dns.Msg) *dns.Msg { m, _, _ := serve(f, &test.ResponseWriter{}, r); return m },
				"wire":    func(r *dns.Msg) *dns.Msg { m, _, _, _ := serveWire(t, plugin.WireHandler(f), client, r); return m },
			} {
				began := time.Now()
				m := ask(new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
				if m == nil || m.Rcode != want || len(m.Question) != 1 || m.Question[0].Name != "www.example.org." {
					t.Errorf("%s lane, %s: got %v", lane, corefile, m)
				}
				if took := time.Since(began); took > defaultReadTimeout {
					t.Errorf("%s lane, %s: took %v", lane, corefile, took)
				}
			}
		}
	}
}

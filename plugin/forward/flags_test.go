package forward

import (
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// Bits that mean something in replies only, and those that have to be zero, stay behind, in both lanes. A NOTIFY has AA.
func TestFlagsOfQueries(t *testing.T) {
	var asked atomic.Pointer[dns.Msg]
	f := configured(t, "forward . "+upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		asked.Store(r.Copy())
		w.WriteMsg(new(dns.Msg).SetReply(r))
	}))
	for _, c := range []struct {
		lane   string
		opcode int
	}{{"message", dns.OpcodeQuery}, {"wire", dns.OpcodeQuery}, {"message", dns.OpcodeNotify}} {
		r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		r.Opcode, r.AuthenticatedData, r.CheckingDisabled = c.opcode, true, true
		r.Authoritative, r.Truncated, r.RecursionAvailable, r.Zero, r.Rcode = true, true, true, true, dns.RcodeRefused
		var err error
		if c.lane == "wire" {
			_, _, _, err = serveWire(t, f, wire.Peer{}, r)
		} else {
			_, _, err = serve(f, &test.ResponseWriter{}, r)
		}
		if err != nil {
			t.Fatal(c.lane, err)
		}
		h := asked.Load().MsgHdr
		notify := c.opcode == dns.OpcodeNotify
		if h.Authoritative != notify || h.Truncated != notify || h.RecursionAvailable != notify || h.Zero != notify || (h.Rcode != 0) != notify ||
			!h.RecursionDesired || !h.AuthenticatedData || !h.CheckingDisabled {
			t.Errorf("%s: the upstream saw %s", c.lane, h.String())
		}
		if !r.Truncated || !r.Zero {
			t.Errorf("%s: the client's own query was changed", c.lane)
		}
	}
}

package validator

import (
	"context"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// slow is a source that does not answer for keys before who asks has gone.
type slow struct {
	*wireSource
	quick bool
	left  chan struct{}
}

func (s *slow) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if !s.quick && r.Question[0].Qtype == dns.TypeDNSKEY {
		close(s.left)
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Second):
		}
		return dns.RcodeServerFailure, errNoReply
	}
	return s.wireSource.ServeDNS(ctx, w, r)
}

// A client gets a failure when its time is over, whatever is still asked for its sake. That counts for its own question
// only, and if it has gone away itself, for none: keys that come later hold for others.
func TestPatience(t *testing.T) {
	for _, lane := range []string{"wire", "message", "gone"} {
		v, src := lab(t, "")
		s := &slow{wireSource: &wireSource{source: src, replies: map[string]*wire.Packed{}}, left: make(chan struct{})}
		v.Next, v.patience = s, func() time.Duration { return 100 * time.Millisecond }
		query := new(dns.Msg).SetQuestion("www.example.", dns.TypeA)
		do(query)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		began := time.Now()
		if lane == "wire" {
			packet, err := query.Pack()
			if err != nil {
				t.Fatal(err)
			}
			var w wire.Reply
			var q wire.Query
			if serveWire(t, v, &w, &q, packet, nil); w.Rcode() != dns.RcodeServerFailure {
				t.Errorf("%s: rcode %d", lane, w.Rcode())
			}
		} else {
			if lane == "gone" {
				v.patience = patience
				go func() { <-s.left; cancel() }()
			}
			rec := dnstest.NewRecorder(&test.ResponseWriter{})
			if rcode, err := v.ServeDNS(ctx, rec, query); rcode != dns.RcodeServerFailure || err == nil {
				t.Errorf("%s: rcode %d, %v", lane, rcode, err)
			}
		}
		if d := time.Since(began); d > 4*time.Second {
			t.Errorf("%s: it took %v", lane, d)
		}
		s.quick = true
		if _, ok := v.known(questionOf(t, "www.example.")); ok == (lane == "gone") {
			t.Errorf("%s: the failure is kept: %v", lane, ok)
		}
		v.patience = patience
		if m, _, err := ask(t, v, "root-key-sentinel-not-ta-12345.example.", do); err != nil || m == nil || !m.AuthenticatedData {
			t.Errorf("%s: another name of the zone: %v %v", lane, m, err)
		}
	}
}

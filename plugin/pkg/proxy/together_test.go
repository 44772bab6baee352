package proxy

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/packed"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// What becomes of an upstream's batches, step by step.
func TestTogether(t *testing.T) {
	const lose, answer, single = "lose", "answer", "single"
	for name, tc := range map[string]struct {
		steps     []string // a batch each: all of it is lost, or one answered; or a single query is answered
		suspended bool
	}{
		"all is well":                       {[]string{answer, answer, single}, false},
		"a batch is lost now and then":      {[]string{single, lose, single, answer, lose, single, answer}, false},
		"two are lost, single ones are not": {[]string{single, lose, single, lose}, true},
		"nothing is answered":               {[]string{single, lose, lose, lose, lose}, false},
		"it is back":                        {[]string{lose, lose, single, lose}, true},
	} {
		var u together
		now := int64(0)
		suspended := false
		for _, s := range tc.steps {
			switch s {
			case single:
				u.answered(0)
			case answer:
				u.answered(u.next(now))
			case lose:
				batch := u.next(now)
				for range 3 {
					suspended = u.missed(batch, now) || suspended
				}
				if u.missed(0, now) {
					t.Errorf("%s: suspended for a single query", name)
				}
			}
		}
		if suspended != tc.suspended || suspended != (u.next(now) == 0) {
			t.Errorf("%s: suspended %v, next batch %d", name, suspended, u.next(now))
		}
		if now += int64(suspendedFor); u.next(now) == 0 {
			t.Errorf("%s: suspended for more than %v", name, time.Duration(now))
		}
	}
}

// An upstream that answers nothing of what goes together gets single queries after the second batch.
func TestUpstreamThatIsNotUpToBatches(t *testing.T) {
	p := proxyTo(t, udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		m := new(dns.Msg)
		if m.Unpack(q) == nil && !strings.HasPrefix(m.Question[0].Name, "batch") {
			send(replyTo(q))
		}
	}), "dns")
	loop := eventloop.New()
	defer loop.Close()
	ask := func(n int, label string) (lost int) {
		t.Helper()
		ends := make(told, n)
		loop.Enter()
		for i := range n {
			x := &Exchange{Query: packed.Message(t, fmt.Sprintf("%s%d.example.org.", label, i), dns.TypeA), Owner: ends, Timeout: 50 * time.Millisecond}
			if label == "single" {
				x.Timeout = 10 * time.Second
			}
			p.BeginIn(x, loop)
		}
		loop.Done(0)
		loop.Leave()
		for range n {
			if x := <-ends; x.Err != nil {
				lost++
			}
		}
		return lost
	}
	suspended := func() float64 { return testutil.ToFloat64(segmentationSuspended.WithLabelValues(p.name, p.addr)) }
	for i, step := range []struct {
		label string
		n     int
		want  float64
	}{{"batch", 5, 0}, {"single", 1, 0}, {"batch", 5, 1}, {"batch", 5, 1}} {
		lost := ask(step.n, step.label)
		if all := step.label == "batch"; all != (lost == step.n) {
			t.Errorf("step %d: %d of %d were lost", i, lost, step.n)
		}
		if got := suspended(); got != step.want {
			t.Errorf("step %d: suspended %v times", i, got)
		}
	}
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	if n := p.engine.together.next(p.engine.now()); n != 0 {
		t.Error("queries go together")
	}
}

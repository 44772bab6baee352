package route53

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/file/mirror/mirrortest"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// TestStalledRequest: a request that is not answered, as its connection is dead and does not tell so, is sent once
// more, over another connection: zones are not read minutes late for it.
func TestStalledRequest(t *testing.T) {
	logtest.Capture(t)
	before := answerTime
	defer func() { answerTime = before }()
	answerTime = time.Second
	p := new(provider)
	environment(t, p)
	var stalled atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "rrset") && stalled.Add(1) == 1 {
			<-r.Context().Done()
			return
		}
		p.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	c := caddy.NewTestController("dns", "route53 example.org:Z1 {\naws_endpoint "+s.URL+"\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	h := dnsserver.GetConfig(c).Plugin[0](test.NextHandler(dns.RcodeRefused, nil)).(*Route53)
	mirrortest.Answers(t, h, map[string]string{"www.example.org. A": "NOERROR 192.0.2.1 192.0.2.2"})
	if stalled.Load() < 3 {
		t.Error("no request was stalled")
	}
}

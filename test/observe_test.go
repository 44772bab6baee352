package test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// series is the value of a metric's series that has all these labels, "" if there is none.
func series(addr, name string, labels map[string]string) string {
	for _, mf := range test.Scrape("http://" + addr + "/metrics") {
		if mf.Name != name {
			continue
		}
		for _, m := range mf.Metrics {
			text := fmt.Sprint(m)
			all := true
			for k, v := range labels {
				all = all && regexp.MustCompile(`[{,]`+k+`=`+regexp.QuoteMeta(fmt.Sprintf("%q", v))+`[,}]`).MatchString(text)
			}
			if all {
				return text[len(text)-len(regexp.MustCompile(`[0-9.]+$`).FindString(text)):]
			}
		}
	}
	return ""
}

// Counters whose labels are known are 0 from the start: who watches how fast they grow sees the first step, too.
func TestCountersFromZero(t *testing.T) {
	metrics := loopback.Addr()
	start(t, fmt.Sprintf("zero.example:0 {\nbind 127.0.0.13\nprometheus %s\nshed\ncookie\ndns64\nthrottle {\nqueries 10\nerrors 0\n}\nproxyproto {\nallow 192.0.2.0/24\n}\n}", metrics))
	labels := func(more ...string) map[string]string {
		all := map[string]string{"server": "dns://127.0.0.13:0"}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	for _, tc := range []struct {
		metric string
		labels map[string]string
	}{
		{"coredns_shed_dropped_total", labels("reason", "query")},
		{"coredns_shed_dropped_total", labels("reason", "response")},
		{"coredns_dns_queries_dropped_total", labels("reason", "waiting")},
		{"coredns_dns_limits_reached_total", labels("reason", "connections")},
		{"coredns_dns_limits_reached_total", labels("reason", "write_time")},
		{"coredns_dns_proxy_headers_refused_total", labels("reason", "invalid")},
		{"coredns_cookie_queries_total", labels("result", "valid")},
		{"coredns_cookie_refused_total", labels("reply", "badcookie")},
		{"coredns_dns64_requests_translated_total", labels()},
		{"coredns_throttle_exceeded_total", labels("reason", "queries", "action", "drop")},
		{"coredns_throttle_exceeded_total", labels("reason", "queries", "action", "refuse")},
		{"coredns_throttle_exceeded_total", labels("reason", "denials", "action", "slip")},
		{"coredns_tls_certificate_reloads_total", map[string]string{"result": "failed"}},
	} {
		if got := series(metrics, tc.metric, tc.labels); got == "" {
			t.Errorf("there is no %s %v", tc.metric, tc.labels)
		}
	}
	if got := series(metrics, "coredns_throttle_exceeded_total", labels("reason", "errors")); got != "" {
		t.Errorf("errors are counted (%s), and have no bound", got)
	}
}

func TestMetricsOfQueries(t *testing.T) {
	metrics := loopback.Addr()
	zone := unusedZone()
	_, udp, tcp := start(t, fmt.Sprintf("%[1]s:0 sub.%[1]s:0 {\nbind 127.0.0.1\nprometheus %[2]s\nerrors\nlog {\nclass error\n}\nany\nerratic {\ndrop 3\n}\n}", zone, metrics))
	name := "www." + zone
	query := question(name, dns.TypeA)
	query.SetEdns0(1232, true)
	ask(t, "tcp", tcp, question(name, dns.TypeA)) // number 0, dropped
	ask(t, "udp", udp, query)
	ask(t, "udp", udp, question(name, dns.TypeMX))  // number 2, SERVFAIL
	ask(t, "udp", udp, question(name, dns.TypeANY)) // answered by any
	ask(t, "udp", udp, question("www.sub."+zone, 65280))

	const server = "dns://127.0.0.1:0"
	for _, tc := range []struct {
		metric string
		labels map[string]string
		want   string
	}{
		{"coredns_dns_requests_total", map[string]string{"server": server, "zone": zone, "proto": "udp", "family": "1", "type": "A", "view": ""}, "1"},
		{"coredns_dns_requests_total", map[string]string{"server": server, "zone": zone, "proto": "tcp", "family": "1", "type": "A"}, "1"},
		{"coredns_dns_requests_total", map[string]string{"server": server, "zone": zone, "type": "ANY"}, "1"},
		{"coredns_dns_requests_total", map[string]string{"server": server, "zone": "sub." + zone, "type": "other"}, "1"},
		{"coredns_dns_do_requests_total", map[string]string{"server": server, "zone": zone}, "1"},
		{"coredns_dns_responses_total", map[string]string{"zone": zone, "rcode": "NOERROR", "plugin": "erratic"}, "1"},
		{"coredns_dns_responses_total", map[string]string{"zone": zone, "rcode": "NOERROR", "plugin": "any"}, "1"},
		{"coredns_dns_responses_total", map[string]string{"zone": zone, "rcode": "SERVFAIL", "plugin": ""}, "1"},
		{"coredns_dns_responses_total", map[string]string{"zone": zone, "rcode": "NOERROR", "plugin": ""}, "1"}, // dropped
		{"coredns_dns_unanswered_total", map[string]string{"server": server, "zone": zone, "view": ""}, "1"},
		{"coredns_dns_request_size_bytes", map[string]string{"zone": zone, "proto": "tcp"}, "1"},
		{"coredns_dns_response_size_bytes", map[string]string{"zone": zone, "proto": "udp"}, "3"},
		{"coredns_dns_request_duration_seconds", map[string]string{"zone": zone}, "4"},
	} {
		if got := series(metrics, tc.metric, tc.labels); got != tc.want {
			t.Errorf("%s %v: got %q, want %q", tc.metric, tc.labels, got, tc.want)
		}
	}
}

func TestLogLines(t *testing.T) {
	out := captureLog(t)
	_, udp, tcp := start(t, ".:0 {\nbind 127.0.0.1\nmetadata\nlog . \"{common} {local} {/log/class} {/log/type}\"\nerratic {\ndrop 4\nlarge\n}\n}")
	query := question("WWW.Example.org.", dns.TypeA)
	query.SetEdns0(4096, true)
	ask(t, "tcp", tcp, question("drop.example.org.", dns.TypeA)) // number 0
	ask(t, "udp", udp, query)
	ask(t, "tcp", tcp, question("www.example.org.", dns.TypeMX))
	ask(t, "udp", udp, question("www.example.org.", dns.TypeA)) // does not fit 512 octets

	const at = `(?m)^\[INFO\] 127\.0\.0\.1:\d+ - \d+ `
	for _, line := range []string{
		at + `"A IN drop\.example\.org\. tcp 34 false 65535" - - 0 0\.\d+s 127\.0\.0\.1 error OTHERERROR$`,
		at + `"A IN www\.example\.org\. udp 44 true 4096" NOERROR qr,aa,rd 963 0\.\d+s 127\.0\.0\.1 success NOERROR$`,
		at + `"MX IN www\.example\.org\. tcp 33 false 65535" SERVFAIL qr,rd 33 0\.\d+s 127\.0\.0\.1 error SERVERERROR$`,
		at + `"A IN www\.example\.org\. udp 33 false 512" NOERROR qr,aa,tc,rd 963 0\.\d+s 127\.0\.0\.1 success NOERROR$`,
	} {
		logged := regexp.MustCompile(line)
		eventually.Holds(t, "log "+line, func() bool { return logged.MatchString(out.String()) }) // soon after the reply
	}
}

func TestEDNSAndTruncation(t *testing.T) {
	_, udp, tcp := start(t, ".:0 {\nbind 127.0.0.1\nerratic {\ndrop 0\nlarge\n}\n}")
	const all = 30
	for _, tc := range []struct {
		network   string
		size      uint16 // 0 is no EDNS
		do        bool
		answers   int // at most
		truncated bool
	}{
		{"udp", 0, false, all, true},
		{"udp", 512, true, all, true},
		{"udp", 100, false, all, true},
		{"udp", 1232, true, all, false},
		{"tcp", 0, false, all, false},
		{"tcp", 512, false, all, false},
	} {
		query := question("Www.example.org.", dns.TypeA)
		if tc.size > 0 {
			query.SetEdns0(tc.size, tc.do)
		}
		m := ask(t, tc.network, map[string]string{"udp": udp, "tcp": tcp}[tc.network], query)
		if m == nil {
			t.Errorf("%+v: no reply", tc)
			continue
		}
		if m.Truncated != tc.truncated || !tc.truncated && len(m.Answer) != all || tc.truncated && len(m.Answer) >= all {
			t.Errorf("%+v: TC %t, %d answers", tc, m.Truncated, len(m.Answer))
		}
		if limit := max(int(tc.size), dns.MinMsgSize); tc.network == "udp" && m.Len() > limit {
			m.Compress = true
			if m.Len() > limit {
				t.Errorf("%+v: %d octets", tc, m.Len())
			}
		}
		switch o := m.IsEdns0(); {
		case (o != nil) != (tc.size > 0):
			t.Errorf("%+v: got OPT %v", tc, o)
		case o != nil && (o.Do() != tc.do || o.Version() != 0):
			t.Errorf("%+v: got OPT %v", tc, o)
		}
		if m.Question[0].Name != "Www.example.org." || !m.Authoritative {
			t.Errorf("%+v: got %v", tc, m.MsgHdr)
		}
	}
}

// A plugin's own question passes all plugins of the block that it belongs to, and is counted as a query.
func TestUpstreamLookup(t *testing.T) {
	metrics, outer, inner := loopback.Addr(), unusedZone(), unusedZone()
	asks := plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		m, err := upstream.New().Lookup(ctx, request.Request{W: w, Req: r}, strings.Replace(r.Question[0].Name, outer, inner, 1), dns.TypeA)
		if err != nil {
			return dns.RcodeServerFailure, err
		}
		reply := new(dns.Msg).SetReply(r)
		reply.Answer = m.Answer
		w.WriteMsg(reply)
		return dns.RcodeSuccess, nil
	})
	asktest.handler = asks
	registerAsktest()
	_, udp, _ := start(t, fmt.Sprintf("%[2]s:0 {\nbind 127.0.0.1\nprometheus %[1]s\nasktest\n}\n%[3]s:0 {\nbind 127.0.0.1\nprometheus %[1]s\nerratic {\ndrop 0\n}\n}", metrics, outer, inner))
	m := ask(t, "udp", udp, question("www."+outer, dns.TypeA))
	if m == nil || len(m.Answer) != 1 || m.Answer[0].Header().Name != "www."+inner {
		t.Fatalf("got %v", m)
	}
	if got := series(metrics, "coredns_dns_responses_total", map[string]string{"zone": inner, "plugin": "erratic"}); got != "1" {
		t.Errorf("inner question: counted %q", got)
	}
	if got := series(metrics, "coredns_dns_responses_total", map[string]string{"zone": outer, "plugin": "asktest"}); got != "1" {
		t.Errorf("outer query: counted %q", got)
	}
}

// asktest is a plugin behind prometheus, as programs bring plugins of their own.
var asktest struct {
	handler  plugin.HandlerFunc
	register sync.Once
}

func registerAsktest() {
	asktest.register.Do(func() {
		behind := slices.Index(dnsserver.Directives, "prometheus") + 1
		dnsserver.Directives = slices.Insert(slices.Clone(dnsserver.Directives), behind, "asktest")
		plugin.Register("asktest", func(c *caddy.Controller) error {
			h := asktestHandler{asktest.handler}
			dnsserver.GetConfig(c).AddPlugin(func(plugin.Handler) plugin.Handler { return h })
			return nil
		})
	})
}

type asktestHandler struct{ plugin.HandlerFunc }

func (asktestHandler) Name() string { return "asktest" }

var zones atomic.Int64

// unusedZone is a zone that no metric of this process knows yet.
func unusedZone() string { return fmt.Sprintf("zone%d.example.", zones.Add(1)) }

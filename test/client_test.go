package test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// start starts a server, and ends it with the test.
func start(t *testing.T, corefile string) (i *caddy.Instance, udp, tcp string) {
	t.Helper()
	i, udp, tcp, err := CoreDNSServerAndPorts(corefile)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{instance: i}
	t.Cleanup(r.end)
	return i, loopback.To(udp), loopback.To(tcp)
}

// running is a server that may be restarted; the instance that serves last is ended.
type running struct{ instance *caddy.Instance }

func (r *running) end() {
	r.instance.ShutdownCallbacks()
	CoreDNSServerStop(r.instance)
}

// ask is the reply to one query, nil if there is none within two seconds.
func ask(t *testing.T, network, addr string, m *dns.Msg) *dns.Msg {
	t.Helper()
	c := &dns.Client{Net: network, Timeout: 2 * time.Second}
	reply, _, err := c.Exchange(m, addr)
	if err != nil {
		t.Logf("%s %s: %v", network, addr, err)
		return nil
	}
	return reply
}

func question(name string, typ uint16) *dns.Msg { return new(dns.Msg).SetQuestion(name, typ) }

// captureLog redirects Go's log for the rest of the test. Servers must have been started by this package before or be so after.
func captureLog(t *testing.T) *logtest.Output {
	t.Helper()
	quiet()
	return logtest.Capture(t)
}

// get is what a new connection gets from an HTTP endpoint: status and text, or "no answer".
func get(url string) string {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 3 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return "no answer"
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.Status[:3] + " " + string(body)
}

package test

import (
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// A server without the plugin that autopath asks starts, says so once, and answers each name as it is.
func TestAutopathWithoutItsPlugin(t *testing.T) {
	l := captureLog(t)
	_, udp, _ := start(t, "example.org:0 example.net:0 {\nbind 127.0.0.1\nautopath @kubernetes\nwhoami\n}")
	if m := ask(t, "udp", udp, question("www.a.example.org.", dns.TypeA)); m == nil || m.Rcode != dns.RcodeSuccess {
		t.Errorf("got %v", m)
	}
	const want = "[WARNING] plugin/autopath: Corefile:3: kubernetes is not in this server block"
	l.Await(t, want)
	if n := strings.Count(l.String(), "plugin/autopath"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, l)
	}
}

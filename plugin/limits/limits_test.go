package limits

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

// text writes down what is set.
func text(l dnsserver.Limits) string {
	var b strings.Builder
	for _, f := range []struct {
		name string
		p    *int
	}{
		{"connections", l.Connections}, {"client", l.ClientConnections}, {"v4", l.ClientBits4}, {"v6", l.ClientBits6}, {"streams", l.Streams},
		{"pipeline", l.Pipeline}, {"query", l.QueryBytes}, {"header", l.HeaderBytes}, {"unread", l.UnreadBytes}, {"waiting", l.Waiting}, {"inflight", l.InFlightBytes},
	} {
		if f.p != nil {
			fmt.Fprintf(&b, " %s=%d", f.name, *f.p)
		}
	}
	if l.Handshake != nil {
		fmt.Fprintf(&b, " handshake=%v", *l.Handshake)
	}
	return strings.TrimSpace(b.String())
}

func TestSetup(t *testing.T) {
	for options, want := range map[string]string{
		"":                              "",
		"connections 0":                 "connections=0",
		"connections 1000":              "connections=1000",
		"client_connections 50":         "client=50",
		"client_connections 50 24 48":   "client=50 v4=24 v6=48",
		"streams 100\npipeline 16":      "streams=100 pipeline=16",
		"query_bytes 4096":              "query=4096",
		"header_bytes 8K":               "header=8192",
		"unread_bytes 2m":               "unread=2097152",
		"unread_bytes 0":                "unread=0",
		"handshake 1500ms":              "handshake=" + (1500 * time.Millisecond).String(),
		"waiting 0\nin_flight_bytes 1G": "waiting=0 inflight=1073741824",
	} {
		c := caddy.NewTestController("dns", "limits {\n"+options+"\n}")
		if err := setup(c); err != nil {
			t.Errorf("%q: %v", options, err)
			continue
		}
		if got := text(dnsserver.GetConfig(c).Limits); got != want {
			t.Errorf("%q: got %s, want %s", options, got, want)
		}
	}
}

func TestSetupErrors(t *testing.T) {
	const place = "plugin/limits: Testfile:2 - Error during parsing: "
	for input, want := range map[string]string{
		"limits 5":                                            "Wrong argument count",
		"limits\nlimits":                                      "this plugin can only be used once per Server Block",
		"limits {\nconections 5\n}":                           place + "unknown property 'conections': did you mean 'connections'?",
		"limits {\nconnections\n}":                            "Wrong argument count",
		"limits {\nconnections -1\n}":                         place + "connections must be between 0 and ",
		"limits {\nconnections many\n}":                       place + "connections: strconv.Atoi",
		"limits {\nconnections 1\nconnections 2\n}":           "connections can only be specified once",
		"limits {\nclient_connections 1 24\n}":                "Wrong argument count",
		"limits {\nclient_connections 1 33 64\n}":             place + "length of IPv4 prefixes must be between 1 and 32: 33",
		"limits {\nclient_connections 1 24 0\n}":              place + "length of IPv6 prefixes must be between 1 and 128: 0",
		"limits {\npipeline 0\n}":                             place + "pipeline must be between 1 and 65536: 0",
		"limits {\nquery_bytes 100\n}":                        place + "query_bytes must be between 512 and 65535: 100",
		"limits {\nheader_bytes 100\n}":                       place + "header_bytes must be 0, for no limit, or at least 512: 100",
		"limits {\nunread_bytes 1T\n}":                        place + `unread_bytes: invalid size "1T"`,
		"limits {\nunread_bytes KM\n}":                        place + `unread_bytes: invalid size "KM"`,
		"limits {\nunread_bytes -5\n}":                        place + `unread_bytes: invalid size "-5"`,
		"limits {\nunread_bytes 99999999999999G\n}":           place + "unread_bytes: invalid size",
		"limits {\nhandshake 1ms\n}":                          place + "handshake must be between 100ms and 1h0m0s: 1ms",
		"limits {\nwaiting 1 2\n}":                            "Wrong argument count",
		"limits {\nin_flight_bytes 1M\nin_flight_bytes 2M\n}": "in_flight_bytes can only be specified once",
	} {
		if err := setup(caddy.NewTestController("dns", input)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", input, err, want)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

package recurse

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
)

// An error tells the server that failed last, or that none was asked, where that is so and *errors* wants it; the client
// is told the same as ever.
func TestDetails(t *testing.T) {
	server := &store.Server{Addr: netip.MustParseAddrPort("192.0.2.1:53")}
	for _, tc := range []struct {
		details bool
		res     iterate.Result
		want    string
	}{
		{false, iterate.Result{Queries: 3, Missed: iterate.Missed{N: 2, Server: server}}, "none"},
		{true, iterate.Result{}, "  0"},
		{true, iterate.Result{Queries: 3}, "none"},
		{true, iterate.Result{Queries: 3, Missed: iterate.Missed{N: 2, Server: server}}, "192.0.2.1:53 udp 2"},
		{true, iterate.Result{Queries: 3, Missed: iterate.Missed{N: 1, Server: server, TCP: true}}, "192.0.2.1:53 tcp 1"},
		{true, iterate.Result{Queries: 3, Missed: iterate.Missed{N: 1, Server: server, TCP: true, TLS: true}}, "192.0.2.1:53 tls 1"},
	} {
		tc.res.Code, tc.res.Text = 22, "why"
		err := (&Recurse{details: tc.details}).explain(&tc.res)
		got := "none"
		var a plugin.Attempted
		if errors.As(err, &a) {
			upstream, transport, n := a.Attempt()
			got = fmt.Sprintf("%s %s %d", upstream, transport, n)
		}
		if got != tc.want {
			t.Errorf("%v %+v: %s, want %s", tc.details, tc.res.Missed, got, tc.want)
		}
		var e *explained
		if !errors.As(err, &e) || e.code != 22 || err.Error() != "why" {
			t.Errorf("the client is told %v", err)
		}
	}
}

// What clients are told of a server that spoke, and was of no use, is more than that the network failed.
func TestWhy(t *testing.T) {
	closed := &net.OpError{Op: "read", Net: "tcp", Err: io.EOF}
	for want, err := range map[string]error{
		"it closed the connection": closed, "it refuses its own cookies": proxy.ErrBadCookie, "connection refused": &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"forged replies": proxy.ErrForged, "network error": errors.New("other"),
	} {
		if got := why(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

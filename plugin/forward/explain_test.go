package forward

import (
	"errors"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// told is what an error has for the client.
func told(err error) (code uint16, text string, ok bool) {
	var e interface{ ExtendedError() (uint16, string) }
	if ok = errors.As(err, &e); ok {
		code, text = e.ExtendedError()
	}
	return code, text, ok
}

func TestFailuresAreExplained(t *testing.T) {
	closed, mute := loopback.Addr(), silence(t)
	for _, tc := range []struct {
		corefile string
		code     uint16
		text     string
		log      string // part of the error's text
	}{
		{closed + " {\nede\n}", dns.ExtendedErrorCodeNetworkError, closed + ": connection refused", "read udp"},
		{mute + " {\nede\nread_timeout 20ms\n}", dns.ExtendedErrorCodeNoReachableAuthority, mute + ": no reply in time", "i/o timeout"},
		{mute + " " + closed + " {\nede\npolicy sequential\nread_timeout 20ms\nmax_connect_attempts 2\n}", dns.ExtendedErrorCodeNetworkError, closed + ": connection refused", "refused"},
	} {
		f := configured(t, "forward . "+tc.corefile)
		r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		_, rcode, err := serve(f, &test.ResponseWriter{}, r)
		_, wireRcode, _, wireErr := serveWire(t, f, client, r)
		for lane, err := range map[string]error{"message": err, "wire": wireErr} {
			code, text, ok := told(err)
			if !ok || code != tc.code || text != tc.text || !strings.Contains(err.Error(), tc.log) {
				t.Errorf("%s: in the %s lane %d %q, %v", tc.corefile, lane, code, text, err)
			}
		}
		if rcode != dns.RcodeServerFailure || wireRcode != dns.RcodeServerFailure {
			t.Errorf("%s: %d and %d", tc.corefile, rcode, wireRcode)
		}
	}
}

func TestDownIsExplained(t *testing.T) {
	a, b := loopback.Addr(), loopback.Addr()
	f := configured(t, "forward . "+a+" "+b+" {\nede\npolicy sequential\nfailfast_all_unhealthy_upstreams\nhealth_check 10ms\nmax_fails 1\n}")
	eventually.Holds(t, "both are down", func() bool {
		_, _, err := askA(f, "www.example.org.")
		_, text, _ := told(err)
		return errors.Is(err, ErrNoHealthy) && text == a+": down, and 1 more"
	})
}

// Without the option nobody is told, and a refusal is told as what it is.
func TestExplainedOnlyIfAsked(t *testing.T) {
	if _, _, err := askA(configured(t, "forward . "+loopback.Addr()), "www.example.org."); err == nil {
		t.Error("no error")
	} else if _, _, ok := told(err); ok {
		t.Error("told: ", err)
	}
	f := configured(t, "forward . "+silence(t)+" {\nede\nmax_concurrent 1\n}")
	f.concurrent.Add(1)
	_, rcode, err := askA(f, "www.example.org.")
	if code, text, ok := told(err); !ok || rcode != dns.RcodeRefused || code != dns.ExtendedErrorCodeOther || text != "concurrent queries exceeded maximum 1" {
		t.Errorf("%d %v: %d %q", rcode, err, code, text)
	}
	_, rcode, _, err = serveWire(t, f, client, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
	if code, _, ok := told(err); !ok || rcode != dns.RcodeRefused || code != dns.ExtendedErrorCodeOther {
		t.Errorf("in the wire lane %d %v", rcode, err)
	}
	if n := f.concurrent.Load(); n != 1 {
		t.Errorf("%d count", n)
	}
}

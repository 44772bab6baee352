package edns_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/edns"

	"github.com/miekg/dns"
)

// told is an error with an extended one, which may wrap another.
type told struct {
	error
	code uint16
}

func (t told) Error() string                   { return "told" }
func (t told) ExtendedError() (uint16, string) { return t.code, "why" }
func (t told) Unwrap() error                   { return t.error }

// An error reply has all that an error tells; clients without EDNS are told nothing.
func TestErrorReply(t *testing.T) {
	for _, c := range []struct {
		err  error
		edns bool
		want string
	}{
		{told{nil, 22}, true, "22 why,"}, {fmt.Errorf("wrapped: %w", told{told{nil, 13}, 22}), true, "22 why,13 why,"},
		{told{told{nil, 13}, 22}, false, ""}, {told{errors.New("x"), 22}, true, "22 why,"}, {errors.New("x"), true, ""},
	} {
		q := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
		if c.edns {
			q.SetEdns0(1232, false)
		}
		got := ""
		if opt := edns.ErrorReply(q, dns.RcodeServerFailure, c.err).IsEdns0(); opt != nil {
			for _, o := range opt.Option {
				e := o.(*dns.EDNS0_EDE)
				got += fmt.Sprintf("%d %s,", e.InfoCode, e.ExtraText)
			}
		}
		if got != c.want {
			t.Errorf("%v, EDNS %v: %q, want %q", c.err, c.edns, got, c.want)
		}
	}
}

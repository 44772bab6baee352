package rcode_test

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/rcode"
)

func TestToString(t *testing.T) {
	for _, tc := range []struct {
		code int
		want string
	}{
		{dns.RcodeSuccess, "NOERROR"},
		{dns.RcodeFormatError, "FORMERR"},
		{dns.RcodeServerFailure, "SERVFAIL"},
		{dns.RcodeNameError, "NXDOMAIN"},
		{dns.RcodeNotImplemented, "NOTIMP"},
		{dns.RcodeRefused, "REFUSED"},
		{dns.RcodeBadVers, "BADSIG"},
		{dns.RcodeBadCookie, "BADCOOKIE"},
		{12, "RCODE12"},
		{4095, "RCODE4095"},
		{-1, "RCODE-1"},
	} {
		if got := rcode.ToString(tc.code); got != tc.want {
			t.Errorf("%d: got %q, want %q", tc.code, got, tc.want)
		}
	}
}

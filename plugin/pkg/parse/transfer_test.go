package parse_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coredns/caddy"

	"github.com/coredns/coredns/plugin/pkg/parse"
)

// controller returns a controller that has read the first word of input.
func controller(input string) *caddy.Controller {
	c := caddy.NewTestController("dns", input)
	c.Next()
	return c
}

func TestTransferIn(t *testing.T) {
	for in, want := range map[string][]string{
		"transfer from 192.0.2.1":                       {"192.0.2.1:53"},
		"transfer from 192.0.2.1:54 2001:db8::1":        {"192.0.2.1:54", "[2001:db8::1]:53"},
		"transfer from [fe80::1%eth0]:54 fe80::2%eth0":  {"[fe80::1%eth0]:54", "[fe80::2%eth0]:53"},
		"transfer from 192.0.2.1\ncatalog example.org.": {"192.0.2.1:53"},
	} {
		c := controller(in)
		got, err := parse.TransferIn(c)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
		if c.NextArg() {
			t.Errorf("%q: %q is left", in, c.Val())
		}
	}
}

func TestTransferInErrors(t *testing.T) {
	for in, want := range map[string]string{
		"transfer":                           "Wrong argument count or unexpected line ending after 'transfer'",
		"transfer from":                      "Wrong argument count or unexpected line ending after 'from'",
		"transfer to 192.0.2.1":              "unknown property to",
		"transfer from *":                    "can't use '*' in transfer from",
		"transfer from 192.0.2.1 *":          "can't use '*' in transfer from",
		"transfer from example.org":          "must specify an IP address: `example.org'",
		"transfer from 192.0.2.1 192.0.2.1%": "must specify an IP address: `192.0.2.1%'",
	} {
		got, err := parse.TransferIn(controller(in))
		if got != nil || err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
}

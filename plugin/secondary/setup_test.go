package secondary

import (
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func TestSetup(t *testing.T) {
	setup, err := caddy.DirectiveAction("dns", "secondary")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ input, want string }{
		{"secondary example.org {\ntransfer from 192.0.2.1 [2001:db8::1]:5353\ntransfer from 192.0.2.2\ntsig k\nstorage d\nzonemd\nmax_records 5\nmax_octets 600\nmax_time 5m\nfallthrough\nupstream\n}", ""},
		{"secondary", "secondary zones require a transfer from property"},
		{"secondary {\ncatalog\n}", "secondary zones require a transfer from property"},
		{"secondary {\ntransfer from *\n}", "can't use '*' in transfer from"},
		{"secondary {\ntransfer from\n}", "Wrong argument count"},
		{"secondary {\ntransfer from ns.example.org\n}", "must specify an IP address: `ns.example.org'"},
		{"secondary {\ntransfer from 192.0.2.1:99999\n}", `invalid port "99999" in "192.0.2.1:99999": must be a number from 1 to 65535`},
		{"secondary {\ntransfer from tls://[2001:db8::1]:dot\n}", `invalid port "dot" in "[2001:db8::1]:dot": must be a number from 1 to 65535`},
		{"secondary {\ntransfer to 192.0.2.1\n}", "unknown property to"},
		{"secondary {\ntransferr from 192.0.2.1\n}", "unknown property 'transferr'"},
		{"secondary {\ntransfer from 192.0.2.1\ncatalog :\n}", `invalid catalog member zone ":"`},
		{"secondary {\ntransfer from 192.0.2.1\ntsig k md5\n}", `unknown algorithm "md5"`},
		{"secondary {\ntransfer from 192.0.2.1\nmax_time 1ms\n}", "max_time"},
		{"secondary a..b {\ntransfer from 192.0.2.1\n}", `invalid zone "a..b"`},
	} {
		err := setup(caddy.NewTestController("dns", tc.input))
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "plugin/secondary: ")) {
			t.Errorf("%q: got %v, want %s", tc.input, err, tc.want)
		}
	}
	s := handler(t, "secondary", "secondary c.example {\ntransfer from 192.0.2.1\ncatalog EXAMPLE.ORG a.test\ncatalog b.test\n}").(Secondary)
	if got := s.roster.catalogs[0].members; !slices.Equal(got, []string{"example.org.", "a.test.", "b.test."}) || !slices.Equal(s.Zones.Names, []string{"c.example."}) {
		t.Errorf("members %v, zones %v", got, s.Zones.Names)
	}
	s = handler(t, "secondary", "secondary c.example {\ntransfer from 192.0.2.1\ncatalog example.org\ncatalog\n}").(Secondary)
	if got := s.roster.catalogs[0].members; len(got) != 0 {
		t.Errorf("members %v", got)
	}
}

func TestReadmeSyntax(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("%v\n%s\nis not\n%s", err, got, directive.Doc().Syntax)
	}
}

package dnsserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/caddy/caddyfile"
)

func TestParseKey(t *testing.T) {
	long := strings.Repeat("a.", 160)
	for _, tc := range []struct{ in, want string }{
		{"example.org", "dns://example.org.:53"},
		{"Example.ORG.:1053", "dns://example.org.:1053"},
		{".", "dns://.:53"},
		{".:0", "dns://.:0"},
		{"dns://.:54", "dns://.:54"},
		{"tls://example.org", "tls://example.org.:853"},
		{"quic://example.org", "quic://example.org.:853"},
		{"grpc://example.org", "grpc://example.org.:443"},
		{"https://.", "https://.:443"},
		{"https3://.:8443", "https3://.:8443"},
		{"10.0.0.5/24", "dns://0.0.10.in-addr.arpa.:53"},
		{"10.1.0.0/23:54", "dns://0.1.10.in-addr.arpa.:54 dns://1.1.10.in-addr.arpa.:54"},
		{"0.0.0.0/0", "dns://in-addr.arpa.:53"},
		{"2001:db8::/31", "dns://8.b.d.0.1.0.0.2.ip6.arpa.:53 dns://9.b.d.0.1.0.0.2.ip6.arpa.:53"},
		{"*.example.org", "dns://*.example.org.:53"},
		{"10.0.0.1", "dns://10.0.0.1.:53"},
		{"[::]:53", "dns://[::].:53"},
		{"example.org:", `error: expecting data after last colon: "example.org:"`},
		{"example.org:abc", `error: invalid port "abc" in "example.org:abc": must be a number`},
		{":53", "error: zone is not a valid domain name: "},
		{"a..b", "error: zone is not a valid domain name: a..b"},
		{long, fmt.Sprintf("error: specified zone is too long: %d > 255", len(long))},
		{"::/0", "error: invalid CIDR ::/0"},
		{"0::/16", "error: invalid CIDR 0::/16"},
		{"foo://example.org", `error: unknown scheme "foo" in "foo://example.org": must be one of dns, tls, quic, grpc, https, https3`},
		{"unix:///tmp/x", "error: cannot serve unix:///tmp/x: there is no server for unix"},
	} {
		zones, err := parseKey(tc.in)
		got := ""
		for _, z := range zones {
			got += " " + z.String()
		}
		if got = strings.TrimSpace(got); err != nil {
			got = "error: " + err.Error()
		}
		if refused := strings.HasPrefix(tc.want, "error: "); got != tc.want && !(refused && strings.HasPrefix(got, strings.TrimSpace(tc.want))) {
			t.Errorf("%s:\n got %s\nwant %s", tc.in, got, tc.want)
		}
	}
}

func TestSplitProtocolHostPort(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"dns://:53", "dns||53|"},
		{"127.0.0.1:4005", "|127.0.0.1|4005|"},
		{"tls://[::1]:853", "tls|::1|853|"},
		{"a://b://c", "|||provided value is not in an address format : a://b://c"},
		{"dns://127.0.0.1", "|||address 127.0.0.1: missing port in address"},
	} {
		trans, ip, port, err := SplitProtocolHostPort(tc.in)
		got := trans + "|" + ip + "|" + port + "|"
		if err != nil {
			got += err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.in, got, tc.want)
		}
	}
}

func TestOverlaps(t *testing.T) {
	any := zoneAddr{"dns", "example.org.", "53", ""}
	bound := zoneAddr{"dns", "example.org.", "53", "127.0.0.1"}
	other := zoneAddr{"dns", "example.org.", "53", "127.0.0.2"}
	tls := zoneAddr{"tls", "example.org.", "53", ""}
	for _, tc := range []struct {
		keys   []zoneAddr
		shared bool
		want   string
	}{
		{[]zoneAddr{any, tls}, false, ""},
		{[]zoneAddr{bound, other}, false, ""},
		{[]zoneAddr{any, any}, false, "cannot serve dns://example.org.:53 - it is already defined"},
		{[]zoneAddr{any, any}, true, ""},
		{[]zoneAddr{bound, bound}, false, "cannot serve dns://example.org.:53 on 127.0.0.1 - it is already defined"},
		{[]zoneAddr{any, bound}, false, "cannot serve dns://example.org.:53 on 127.0.0.1 - zone overlap listener capacity with dns://example.org.:53"},
		{[]zoneAddr{bound, any}, true, "cannot serve dns://example.org.:53 - zone overlap listener capacity with dns://example.org.:53"},
	} {
		o := newOverlaps()
		got := ""
		for _, k := range tc.keys {
			if err := o.add(k, "", tc.shared); err != nil {
				got = err.Error()
			}
		}
		if !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%v: got %q, want %q", tc.keys, got, tc.want)
		}
	}
}

func TestPreferred(t *testing.T) {
	for zone, want := range map[string]bool{
		".": true, "example.org.": true, "a-b.example.": true, "x1.": true, "10.in-addr.arpa.": true, "0.1.ip6.arpa.": true,
		"_tcp.example.": false, "1x.": false, "-a.": false, "a-.": false, "*.example.": false, "10.0.0.1.": false,
	} {
		if preferred(zone) != want {
			t.Errorf("%s: got %v", zone, !want)
		}
	}
}

func TestInspectServerBlocks(t *testing.T) {
	d := &dnsContext{at: map[keyPos]*Config{}}
	blocks, err := d.InspectServerBlocks("Corefile", []caddyfile.ServerBlock{{Keys: []string{"10.1.0.0/23", "tls://b.example"}}, {Keys: []string{"c.example:54"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(blocks[0].Keys, blocks[1].Keys); got != "[dns://0.1.10.in-addr.arpa.:53 dns://1.1.10.in-addr.arpa.:53 tls://b.example.:853] [dns://c.example.:54]" {
		t.Errorf("keys %s", got)
	}
	if len(d.configs) != 4 || d.configs[2].first != d.configs[0] || d.configs[3].first != d.configs[3] {
		t.Error("the configs are not those of the keys")
	}
	if _, err := d.InspectServerBlocks("Corefile", []caddyfile.ServerBlock{{Keys: []string{"}"}}}); err == nil {
		t.Error("a stray brace is no error")
	}
}

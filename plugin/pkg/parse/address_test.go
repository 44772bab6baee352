package parse_test

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/parse"
)

func TestHostPort(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.1":          "192.0.2.1:53",
		"192.0.2.1:":         "192.0.2.1:53",
		"192.0.2.1:5300":     "192.0.2.1:5300",
		"2001:db8::1":        "[2001:db8::1]:53",
		"[2001:db8::1]:5300": "[2001:db8::1]:5300",
		"fe80::1%eth0":       "[fe80::1%eth0]:53",
		"[fe80::1%eth0]:53":  "[fe80::1%eth0]:53",
		"[2001:db8::1]":      "[2001:db8::1]:53",
		"[fe80::1%eth0]":     "[fe80::1%eth0]:53",
		"[192.0.2.1]":        "",
		"[2001:db8::1]x":     "",
		"[]":                 "",
		"[[::1]]":            "",
		"":                   "",
		":53":                "",
		"example.org":        "",
		"example.org:53":     "",
		"192.0.2.256":        "",
		"192.0.2.1:53:53":    "",
		"192.0.2.1%eth0":     "",
		"[192.0.2.1":         "",
		"tls://192.0.2.1":    "",
		"*":                  "",
	} {
		got, err := parse.HostPort(in, "53")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
		if wantErr := "must specify an IP address: `" + in + "'"; err != nil && err.Error() != wantErr {
			t.Errorf("%q: got error %q, want %q", in, err, wantErr)
		}
	}
}

func TestHostPortOrFile(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"192.0.2.1", "192.0.2.1:53"},
		{"192.0.2.1:54", "192.0.2.1:54"},
		{"dns://192.0.2.1", "192.0.2.1:53"},
		{"dns://192.0.2.1:54", "dns://192.0.2.1:54"},
		{"9.9.9.9:", "9.9.9.9:"},
		{"dns://9.9.9.9:", "dns://9.9.9.9:"},
		{"[2001:db8::1]:", "[2001:db8::1]:"},
		{"tls://192.0.2.1:", "tls://192.0.2.1:"},
		{"[2001:db8::1]", "[2001:db8::1]:53"},
		{"dns://[2001:db8::1]", "[2001:db8::1]:53"},
		{"[fe80::1%lo]", "[fe80::1%lo]:53"},
		{"tls://[2001:db8::1]", "tls://[2001:db8::1]:853"},
		{"https3://[2001:db8::1%dns.example.org]", "https3://[2001:db8::1%dns.example.org]:443"},
		{"tls://192.0.2.1", "tls://192.0.2.1:853"},
		{"tls://192.0.2.1:54", "tls://192.0.2.1:54"},
		{"tls://192.0.2.1%dns.example.org", "tls://192.0.2.1%dns.example.org:853"},
		{"tls://192.0.2.1%dns.example.org:54", "tls://192.0.2.1%dns.example.org:54"},
		{"quic://192.0.2.1", "quic://192.0.2.1:853"},
		{"grpc://192.0.2.1", "grpc://192.0.2.1:443"},
		{"https://192.0.2.1", "https://192.0.2.1:443"},
		{"https3://192.0.2.1", "https3://192.0.2.1:443"},
		{"https3://192.0.2.1:54", "https3://192.0.2.1:54"},
		{"https://[2001:db8::1]:54", "https://[2001:db8::1]:54"},
		{"2001:db8::1", "[2001:db8::1]:53"},
		{"fe80::1%eth0", "[fe80::1%eth0]:53"},
		{"[fe80::1%eth0]:54", "[fe80::1%eth0]:54"},
		{"tls://fe80::1%eth0", "tls://[fe80::1%eth0]:853"},
		{"unix:///run/dns.sock", "unix:///run/dns.sock"},
	} {
		got, err := parse.HostPortOrFile(tc.in)
		if err != nil || !slices.Equal(got, []string{tc.want}) {
			t.Errorf("%q: got %q, %v, want %q", tc.in, got, err, tc.want)
		}
	}
}

func TestHostPortOrFileErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                            `invalid address: ""`,
		"tls://":                      `invalid address: "tls://"`,
		"unix://":                     `invalid address: "unix://"`,
		"nosuchfile":                  `not an IP address or file "nosuchfile": open nosuchfile: `,
		"dns.example.org:53":          `not an IP address or file "dns.example.org:53": open `,
		"tls://dns.example.org":       `not an IP address or file "tls://dns.example.org": open `,
		"https://192.0.2.1/dns-query": `not an IP address or file "https://192.0.2.1/dns-query": open `,
		"[192.0.2.1]":                 `not an IP address or file "[192.0.2.1]": open `,
		"[2001:db8::1":                `not an IP address or file "[2001:db8::1": open `,
		"tls:///etc/resolv.conf":      `not an IP address or file "tls:///etc/resolv.conf": open `,
		"192.0.2.1%":                  `not an IP address or file "192.0.2.1%": open `,
		"192.0.2.256":                 `not an IP address or file "192.0.2.256": open `,
	} {
		got, err := parse.HostPortOrFile("192.0.2.1", in)
		if got != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want %s", in, got, err, want)
		}
	}
	if _, err := parse.HostPortOrFile("nosuchfile"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want one that is fs.ErrNotExist", err)
	}
	if got, err := parse.HostPortOrFile(t.TempDir()); err == nil {
		t.Errorf("a folder: got %q", got)
	}
	if got, err := parse.HostPortOrFile(); !errors.Is(err, parse.ErrNoNameservers) {
		t.Errorf("no argument: got %q, %v", got, err)
	}
}

func TestHostPortOrFileReadsFiles(t *testing.T) {
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "resolv.conf")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	full := file("# comment\nnameserver 192.0.2.1\nsearch example.org\nnameserver\nnameserver 2001:db8::1\nnameserver fe80::1%eth0\noptions ndots:5\n")
	empty := file("search example.org\n")

	for _, tc := range []struct {
		in   []string
		want []string
	}{
		{[]string{full}, []string{"192.0.2.1:53", "[2001:db8::1]:53", "[fe80::1%eth0]:53"}},
		{[]string{"192.0.2.9", full, "tls://192.0.2.8"}, []string{"192.0.2.9:53", "192.0.2.1:53", "[2001:db8::1]:53", "[fe80::1%eth0]:53", "tls://192.0.2.8:853"}},
		{[]string{empty, "192.0.2.9"}, []string{"192.0.2.9:53"}},
		{[]string{"dns://" + full}, []string{"192.0.2.1:53", "[2001:db8::1]:53", "[fe80::1%eth0]:53"}},
	} {
		got, err := parse.HostPortOrFile(tc.in...)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%q: got %q, %v, want %q", tc.in, got, err, tc.want)
		}
	}
	if got, err := parse.HostPortOrFile(empty); !errors.Is(err, parse.ErrNoNameservers) {
		t.Errorf("got %q, %v, want ErrNoNameservers", got, err)
	}
}

func FuzzHostPort(f *testing.F) {
	for _, s := range []string{"192.0.2.1", "192.0.2.1:54", "[2001:db8::1]:54", "fe80::1%eth0", "x:y", "[::]:"} {
		f.Add(s)
	}
	f.Add("::%[")
	f.Add("[::1]")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parse.HostPort(s, "53")
		if err != nil {
			return
		}
		host, port, err := net.SplitHostPort(got)
		if err != nil || port == "" {
			t.Fatalf("%q: got %q: %v", s, got, err)
		}
		if _, err := netip.ParseAddr(host); err != nil {
			t.Fatalf("%q: got %q: %v", s, got, err)
		}
		if again, err := parse.HostPort(got, "99"); again != got || err != nil {
			t.Fatalf("%q: got %q, then %q, %v", s, got, again, err)
		}
	})
}

func FuzzHostPortOrFile(f *testing.F) {
	for _, s := range []string{"192.0.2.1", "tls://192.0.2.1%a:54", "https3://[2001:db8::1]:54", "unix:///a", "fe80::1%eth0", "tls://", "0.0.0.0%]", "9.9.9.9:", "dns://[::1]:", "[::1]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		trans, addr := parse.Transport(s)
		if trans != "unix" && strings.ContainsRune(addr, '/') {
			return // the path of any file there may be
		}
		got, err := parse.HostPortOrFile(s)
		if err != nil {
			return
		}
		for _, a := range got {
			if again, err := parse.HostPortOrFile(a); err != nil || !slices.Equal(again, []string{a}) {
				t.Fatalf("%q: got %q, then %q, %v", s, a, again, err)
			}
			if after, _ := parse.Transport(a); after != trans {
				t.Fatalf("%q is of transport %s, %q of %s", s, trans, a, after)
			}
		}
	})
}

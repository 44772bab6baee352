package debug

import (
	"bytes"
	golog "log"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/bind"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func TestSetup(t *testing.T) {
	for input, wantErr := range map[string]string{
		"debug":            "",
		"debug\ndebug":     "",
		"debug off":        "Wrong argument count or unexpected line ending after 'off'",
		"debug {\nlate\n}": "unknown property 'late'",
	} {
		c := caddy.NewTestController("dns", input)
		err := setup(c)
		if wantErr == "" {
			if err != nil || !dnsserver.GetConfig(c).Debug {
				t.Errorf("%q: debug is %t, error %v", input, dnsserver.GetConfig(c).Debug, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), wantErr) || dnsserver.GetConfig(c).Debug {
			t.Errorf("%q: got error %v, want %q", input, err, wantErr)
		}
	}
}

// Debug lines are those of the configuration that serves, also after reloads that fail late.
func TestReloads(t *testing.T) {
	input := func(text string) caddy.Input {
		return caddy.CaddyfileInput{Contents: []byte(text), ServerTypeName: "dns"}
	}
	quiet, out := dnsserver.Quiet, golog.Writer()
	dnsserver.Quiet = true
	golog.SetOutput(new(bytes.Buffer))
	defer func() { dnsserver.Quiet = quiet; golog.SetOutput(out); log.D.Clear() }()

	i, err := caddy.Start(input("example.org:0 {\nbind 127.0.0.1\n}"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { i.Stop() }()
	for _, tc := range []struct { // nobody can listen at 192.0.2.1
		corefile string
		fails    bool
		want     bool
	}{
		{"example.net:0 {\nbind 192.0.2.1\ndebug\n}", true, false},
		{"example.org:0 {\nbind 127.0.0.1\n}\nexample.net:0 {\nbind 127.0.0.1\ndebug\n}", false, true},
		{"example.net:0 {\nbind 192.0.2.1\n}", true, true},
		{"example.org:0 {\nbind 127.0.0.1\n}", false, false},
	} {
		next, err := i.Restart(input(tc.corefile))
		if (err != nil) != tc.fails {
			t.Fatalf("%q: %v", tc.corefile, err)
		}
		i = next
		if log.D.Value() != tc.want {
			t.Errorf("%q: debug lines are %t", tc.corefile, log.D.Value())
		}
	}
}

func TestHexdump(t *testing.T) {
	out := logtest.Capture(t)
	defer log.D.Clear()

	m := new(dns.Msg).SetQuestion("a.example.org.", dns.TypeA)
	m.Id = 0xdcbd
	Hexdump(m, "a", 1)
	Hexdumpf(m, "%d", 2)
	if out.String() != "" {
		t.Errorf("debug lines are off, but %q", out.String())
	}
	log.D.Set()
	const lines = "\ndebug: 000000 dc bd 01 00 00 01 00 00 00 00 00 00 01 61 07 65\n" +
		"debug: 000010 78 61 6d 70 6c 65 03 6f 72 67 00 00 01 00 01\n" +
		"debug: 00001f\n"
	broken := &dns.Msg{Question: []dns.Question{{Name: strings.Repeat("x", 64) + "."}}}
	for _, tc := range []struct {
		write func()
		want  string
	}{
		{func() { Hexdump(m, "text ", 1) }, "[DEBUG] text 1" + lines},
		{func() { Hexdumpf(m, "%03d%%", 2) }, "[DEBUG] 002%" + lines},
		{func() { Hexdump(broken, "text") }, "[DEBUG] text\n"},
		{func() { Hexdump(nil, "text") }, "[DEBUG] text\n"},
	} {
		out.Take()
		if tc.write(); out.String() != tc.want {
			t.Errorf("got\n%swant\n%s", out.String(), tc.want)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

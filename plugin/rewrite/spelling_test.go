package rewrite

import (
	"testing"

	"github.com/miekg/dns"
)

// Names of rules are those that they stand for, however they are written: with an octet escaped or not, by its number or
// as it is.
func TestSpellingOfNames(t *testing.T) {
	for _, tc := range []struct{ rule, asked, seen, reply string }{
		{`rewrite name a\046b.example. c.example.`, `A\.b.example.`, `c.example.`, `A\.b.example.`},
		{`rewrite name exact ä.example. c.example.`, `\195\164.example.`, `c.example.`, `\195\164.example.`},
		{`rewrite name c.example. \195\164\046x.example.`, `c.example.`, `\195\164\.x.example.`, `c.example.`},
		{`rewrite name \099.example. d.example.`, `C.example.`, `d.example.`, `C.example.`},
		{`rewrite name c\.example. d.example.`, `c.example.`, `c.example.`, `c.example.`}, // one label
		{`rewrite name a(b.example. d.example.`, `a\(b.example.`, `d.example.`, `a\(b.example.`},
		{`rewrite name suffix .ü.example. .c.example. answer auto`, `a.\195\188.example.`, `a.c.example.`, `a.\195\188.example.`},
		{`rewrite name prefix x\032. y.`, `x\ .example.`, `y.example.`, `y.example.`},
		{`rewrite name substring .\064. .y.`, `x.\@.example.`, `x.y.example.`, `x.y.example.`},
		{`rewrite name a\999.example. c.example.`, `b.example.`, `b.example.`, `b.example.`}, // no name
	} {
		c, _ := agree(t, tc.rule, func(name string, _ uint16) *dns.Msg {
			return reply(0, name+" 5 IN A 192.0.2.1")
		}, new(dns.Msg).SetQuestion(tc.asked, dns.TypeA))
		if tc.reply == "" { // no name came of it
			if c.err == nil || c.seen != "" {
				t.Errorf("%s, asked for %s: %+v", tc.rule, tc.asked, c)
			}
			continue
		}
		want := "NOERROR aa " + tc.asked + " A\n" + tc.reply + " 5 IN A 192.0.2.1"
		if c.seen != tc.seen+" IN A" || c.reply != want {
			t.Errorf("%s, asked for %s: source was asked %q, reply %q, want %q, %q", tc.rule, tc.asked, c.seen, c.reply, tc.seen+" IN A", want)
		}
	}
}

package rewrite

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"

	"github.com/coredns/caddy"
)

func netipAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestSetup(t *testing.T) {
	long := strings.Repeat("a", maxPattern+1)
	for _, tc := range []struct{ input, err string }{
		{"rewrite", "plugin/rewrite: Testfile:1 - Error during parsing: no rule type specified for rewrite"},
		{"rewrite foo", `invalid rule type "foo"`},
		{"rewrite stop", "stop rule must begin with a rule type"},
		{"rewrite Continue", "continue rule must begin with a rule type"},
		{"rewrite unknown name a.com b.com", `invalid rule type "unknown"`},
		{"rewrite answer name a b", "response rewrites must begin with a name rule"},
		{"rewrite stop {\nanswer name bar foo\nname regex foo bar\n}", "response rewrites must begin with a name rule"},
		{"rewrite stop {\nname regex foo bar\nanswer name bar foo\n}", ""},
		{"rewrite {\nname a.com b.com\n}", ""},
		{"rewrite name a.com b.com {\nanswer auto\n}", "unknown property 'answer'"},
		{"rewrite NAME Exact a.com b.com", ""},

		{"rewrite name", "too few arguments for a name rule"},
		{"rewrite name a.com", "too few arguments for a name rule"},
		{"rewrite name a.com b.com c.com", "name rule supports only exact, prefix, suffix, substring, and regex name matching, received: a.com"},
		{"rewrite name substring a.com b.com c.com", "exceeded the number of arguments for a non-answer rule argument for substring rule"},
		{"rewrite name regex ([a]\\.com new-{1}.com", `invalid regex matching pattern: ([a]\.com`},
		{"rewrite name regex " + long + " b", "regex pattern too long: 10001 > 10000"},
		{`rewrite name regex ([a])\.com {2}.com`, "the rewrite regex pattern (to) uses more subexpressions than its corresponding matching regex pattern (from)"},
		{"rewrite name exact a.com {1}.com", "uses more subexpressions"},
		{`rewrite name regex (a) b answer`, "type missing for answer rule for regex rule"},
		{`rewrite name regex (a) b answer name a`, "name answer rule for regex rule: 2 arguments required"},
		{`rewrite name regex (a) b answer value`, "value answer rule for regex rule: 2 arguments required"},
		{`rewrite name regex (a) b answer ttl a b`, `invalid type "ttl" for answer rule for regex rule`},
		{`rewrite name regex (a) b answer name (a b`, "invalid regex matching pattern: (a"},
		{`rewrite name regex (a) b answer name a {1}`, "uses more subexpressions"},
		{`rewrite name regex (a) b NoAnswer name a b`, "exceeded the number of arguments for a non-answer rule argument for regex rule"},
		{`rewrite name regex (a) b answer name a b too.long way.too.long`, `invalid type "too.long" for answer rule`},
		{`rewrite name regex (a) b answer name a b value c d answer name e f`, ""},
		{`rewrite name suffix .a .b answer auto answer name a b`, "auto name answer rule cannot be combined with explicit name anwer rules"},
		{`rewrite name suffix .a .b answer name a b Answer Auto`, "auto name answer rule cannot be combined"},
		{`rewrite name suffix .a .b answer auto value a b`, ""},

		{"rewrite type", "type rules must have exactly two arguments"},
		{"rewrite type any a a", "type rules must have exactly two arguments"},
		{"rewrite type any a", ""},
		{"rewrite type FOO a", `invalid type "FOO"`},
		{"rewrite class IN", "class rules must have exactly two arguments"},
		{"rewrite class ch in", ""},
		{"rewrite class IN WV", `invalid class "WV"`},

		{"rewrite edns0", "too few arguments for an EDNS0 rule"},
		{"rewrite edns0 local", "too few arguments for an EDNS0 rule"},
		{"rewrite edns0 what set", `invalid rule type "what"`},
		{"rewrite edns0 local foo 0xffee a", `invalid action: "foo"`},
		{"rewrite edns0 local set", "EDNS0 local rules require three or four args"},
		{"rewrite edns0 local set 0xffee a b", "EDNS0 local rules require three or four args"},
		{"rewrite edns0 local set 0xffee a revert b", "EDNS0 local rules require three or four args"},
		{"rewrite edns0 local set invalid a", `strconv.ParseUint: parsing "invalid": invalid syntax`},
		{"rewrite edns0 local set 0x1ffee a", "value out of range"},
		{"rewrite edns0 local set 0xffee 0xabcdefg", "encoding/hex"},
		{"rewrite edns0 local set 0xffee {dummy}", `unsupported variable name "{dummy}"`},
		{"rewrite edns0 local set 0xffee {a/label} revert", ""},
		{"rewrite edns0 local unset 0xffee a", "local unset action requires exactly two arguments"},
		{"rewrite edns0 nsid set junk", "EDNS0 NSID rules can accept no more than one arg"},
		{"rewrite edns0 nsid unset revert", "nsid unset action requires exactly one argument"},
		{"rewrite edns0 subnet set 24", "EDNS0 subnet rules require three or four args"},
		{"rewrite edns0 subnet append 24 56 72", "EDNS0 subnet rules require three or four args"},
		{"rewrite edns0 subnet set -1 56", "invalid IPv4 bit mask length -1"},
		{"rewrite edns0 subnet set 33 56", "invalid IPv4 bit mask length 33"},
		{"rewrite edns0 subnet set 24 129", "invalid IPv6 bit mask length 129"},
		{"rewrite edns0 subnet set a 56", "strconv.Atoi"},
		{"rewrite edns0 subnet unset 24 56", "subnet unset action requires exactly one argument"},

		{"rewrite cname substring \"\" a.com", "empty substring in a cname rule"},
		{"rewrite ttl a.com", "too few (1) arguments for a ttl rule"},
		{"rewrite ttl regex a", "invalid TTL 'a' for a ttl rule"},
		{"rewrite ttl a.com b.com 5", "ttl rule supports only exact, prefix, suffix, substring, and regex name matching"},
		{"rewrite ttl exact a.com 5 6", "many few arguments for a ttl rule"},
		{"rewrite ttl a.com x-y", "invalid TTL 'x-y' for a ttl rule"},
		{"rewrite ttl a.com -", "invalid TTL '-' for a ttl rule"},
		{"rewrite ttl a.com 9-5", "invalid TTL '9-5' for a ttl rule"},
		{"rewrite ttl a.com 2147483648", "invalid TTL '2147483648' for a ttl rule"},
		{"rewrite ttl a.com 0-2147483647", ""},
		{"rewrite ttl regex (a 5", "invalid regex pattern in a ttl rule: (a"},
		{"rewrite ttl regex " + long + " 5", "regex pattern too long in a ttl rule: 10001 > 10000"},

		{"rewrite rcode a.com NXDOMAIN", "too few (2) arguments for a rcode rule"},
		{"rewrite rcode a b NXDOMAIN NOERROR", "rcode rule supports only exact, prefix, suffix, substring, and regex name matching"},
		{"rewrite rcode exact a 1 2 3", "many few arguments for a rcode rule"},
		{"rewrite rcode a FOO NOERROR", "invalid matching RCODE 'FOO' for a rcode rule"},
		{"rewrite rcode a 3 24", "invalid replacement RCODE '24' for a rcode rule"},
		{"rewrite rcode a 3 -1", "invalid replacement RCODE '-1' for a rcode rule"},
		{"rewrite rcode regex (a 3 0", "invalid regex pattern in a rcode rule: (a"},
		{"rewrite rcode suffix .a nxdomain 0", ""},

		{"rewrite cname a", "too few (1) arguments for a cname rule"},
		{"rewrite cname what a b", "unknown cname rewrite type: what"},
		{"rewrite cname regex (a b", "invalid cname rewrite regex pattern: "},
		{"rewrite cname regex " + long + " b", "regex pattern too long in a cname rule: 10001 > 10000"},
		{"rewrite cname a b", ""},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%.80q: got error %v, want %q", tc.input, err, tc.err)
		}
	}
}

// Local options that are not taken back are known to the server from then on.
// Texts without a final dot that names mostly do not have there are remarked on, whatever the rule is for.
func TestWarnsOfMissingDot(t *testing.T) {
	out := logtest.Capture(t)
	for rule, text := range map[string]string{
		"name prefix pre- post-":         `prefix "pre-" is looked for as "pre-."`,
		"name prefix pre. post.":         "",
		"name suffix a.com b.com":        "",
		"name regex ^a b":                "",
		"name substring Sub subst":       `substring "Sub" is looked for as "sub."`,
		"ttl prefix pre- 5":              `prefix "pre-" is looked for as "pre-."`,
		"ttl substring .sub. 5":          "",
		"ttl a.com 5":                    "",
		"rcode substring sub NXDOMAIN 0": `substring "sub" is looked for as "sub."`,
		"cname prefix pre- post-":        "", // the text is taken as it stands
	} {
		out.Take()
		if err := setup(caddy.NewTestController("dns", "rewrite "+rule)); err != nil {
			t.Errorf("%s: %v", rule, err)
		}
		if got := out.String(); text == "" && got != "" || !strings.Contains(got, text) {
			t.Errorf("%s: log %q, want %q", rule, got, text)
		}
	}
}

func TestSupportedOptions(t *testing.T) {
	serving(t, "rewrite edns0 local set 65101 a\nrewrite edns0 local set 65102 a revert\nrewrite edns0 local unset 65103", nil)
	for code, want := range map[uint16]bool{65101: true, 65102: false, 65103: false} {
		if edns.SupportedOption(code) != want {
			t.Errorf("%d: not %v", code, want)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

// A rule is read, or there is an error. What is read can be asked.
func FuzzNewRule(f *testing.F) {
	for _, line := range []string{
		"name a.com b.com", "continue name regex (.*)\\.a {1}.b answer auto", "name suffix .a .b answer name (a) {1} value b c",
		"type A AAAA", "class CH IN", "edns0 local set 0xffee {qname} revert", "edns0 subnet append 24 56", "edns0 nsid unset",
		"ttl regex a 1-2", "rcode suffix .a 3 0", "cname prefix a b", "stop", "",
	} {
		f.Add(line, "www.example.org.")
	}
	f.Fuzz(func(t *testing.T, line, name string) {
		rule, err := newRule(strings.Fields(line))
		if (rule == nil) != (err != nil) && err == nil {
			t.Fatalf("%q: %v, %v", line, rule, err)
		}
		if err != nil {
			return
		}
		if m := rule.Mode(); m != Stop && m != Continue {
			t.Fatalf("%q: mode %q", line, m)
		}
		if r, ok := rule.(*nameRule); ok {
			out, matched := r.replace(nil, []byte(strings.ToLower(name)))
			if matched != r.matches([]byte(strings.ToLower(name))) || !matched && len(out) > 0 {
				t.Fatalf("%q of %q: %q, %v", line, name, out, matched)
			}
		}
	})
}

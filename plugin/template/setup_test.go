package template

import (
	"bytes"
	golog "log"
	"os"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func TestSetup(t *testing.T) {
	long := strings.Repeat("a", 10001)
	for _, tc := range []struct{ in, err string }{
		{"template ANY ANY", ""},
		{"template IN A example.org example.net {\n upstream\n}", ""},
		{"template ANY ANY {\n answer \"{{ parseInt }}\"\n}", ""}, // what is wrong with it shows when it is rendered
		{"template ANY ANY {\n ederror 21 \"why\"\n rcode NXDOMAIN\n}", ""},
		{"template ANY ANY {\n var a 1\n var b a + 1\n var c 'x' + name()\n expr b > a\n expr 1\n}", ""},
		{"template ANY ANY {\n match ^(?P<a>[a-z]+)$ ^b$\n var a group(\"a\") + group(1)\n}", ""},
		{"template", "Wrong argument count"},
		{"template IN", "Wrong argument count"},
		{"template X A", "invalid query class X"},
		{"template IN A example.org a..b", `invalid zone "a..b"`},
		{"template in A", "invalid query class in"},
		{"template IN X", "invalid RR class X"},
		{"template ANY ANY {\n notavailable\n}", "Wrong argument count or unexpected line ending after 'notavailable'"},
		{"template ANY ANY {\n answer\n}", "Wrong argument count"},
		{"template ANY ANY {\n rcode\n}", "Wrong argument count"},
		{"template ANY ANY {\n rcode UNDEFINED\n}", "unknown rcode UNDEFINED"},
		{"template ANY ANY {\n answer \"{{\"\n}", "could not compile template: {{, "},
		{"template ANY ANY {\n authority \"{{ notAFunction }}\"\n}", "could not compile template: "},
		{"template ANY ANY {\n match (\n}", "could not parse regex: (, "},
		{"template ANY ANY {\n match " + long + "\n}", "regex pattern too long: 10001 > 10000"},
		{"template ANY ANY {\n ederror x\n}", "error parsing extended DNS error code x, "},
		{"template ANY ANY {\n ederror 65536\n}", "error parsing extended DNS error code 65536, "},
		{"template ANY ANY {\n ederror 1 2 3\n}", "Wrong argument count"},
		{"template ANY ANY {\n var a\n}", "Wrong argument count"},
		{"template ANY ANY {\n var 1a 1\n}", `invalid variable name "1a"`},
		{"template ANY ANY {\n var name 1\n}", `variable name "name" is reserved`},
		{"template ANY ANY {\n var group 1\n}", `variable name "group" is reserved`},
		{"template ANY ANY {\n var len 1\n}", `variable name "len" is reserved`},
		{"template ANY ANY {\n var true 1\n}", `variable name "true" is reserved`},
		{"template ANY ANY {\n var a 1\n var a 2\n}", `variable name "a" is reserved`},
		{"template ANY ANY {\n var a b + 1\n var b 1\n}", "could not compile expression: a, "},
		{"template ANY ANY {\n var a 1\n var b 'x' + a\n}", "could not compile expression: b, "},
		{"template ANY ANY {\n expr\n}", "Wrong argument count"},
		{"template ANY ANY {\n expr name() ==\n}", "could not compile expression: "},
		{"template ANY ANY {\n expr unknown == 1\n}", "could not compile expression: "},
	} {
		err := setup(caddy.NewTestController("dns", tc.in))
		switch {
		case tc.err == "" && err != nil:
			t.Errorf("%s: %v", tc.in, err)
		case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), "Testfile:")):
			t.Errorf("%s: error %v, want %q", tc.in, err, tc.err)
		}
	}
}

// What can never be a record, as nothing of the question can mend it, is warned of with its place. The server starts: other directives
// have answers.
func TestNeverRecords(t *testing.T) {
	for in, want := range map[string]string{
		"template IN A {\n answer \"{{ .Name }} 60 IN A notanip\"\n}":                         `Testfile:2: answer "{{ .Name }} 60 IN A notanip" is never a record, and gives SERVFAIL: dns: `,
		"template IN A {\n match a\n additional \"a. 60 IN A x\" \"b. 60 IN A 192.0.2.1\"\n}": `Testfile:3: additional "a. 60 IN A x" is never a record`,
		"template IN A {\n authority nonsense\n}":                                             `Testfile:2: authority "nonsense" is never a record`,
		"template IN A {\n answer \"{{ .Name }}\"\n}":                                         "must be NAME [TTL] [CLASS] TYPE RDATA",
		"template IN TXT {\n answer \"{{ .Name }} 60 IN TXT\"\n}":                             `Testfile:2: answer "{{ .Name }} 60 IN TXT" is never a record, and gives SERVFAIL: no data`,
		// What may be one, or nothing.
		"template IN A {\n answer \"{{ .Name }} 60 IN A {{ .Zone }}\" \"{{ .Group.owner }} nonsense\" \"{{ .Name }}nonsense\"\n}": "",
		"template IN A {\n answer \"\" \"  a. 60 A 192.0.2.1  \" \"; a comment\" \"{{ if .Var }}nonsense{{ end }}\"\n}":           "",
		"template IN A {\n answer nonsense\n rcode SERVFAIL\n}":                                                                   "", // which has no records
	} {
		var logged bytes.Buffer
		golog.SetOutput(&logged)
		err := setup(caddy.NewTestController("dns", in))
		golog.SetOutput(os.Stderr)
		if err != nil || !strings.Contains(logged.String(), want) || want == "" && logged.Len() > 0 {
			t.Errorf("%s: %v, logged %q, want %q", in, err, logged.String(), want)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := directive.Doc().Syntax; got != want {
		t.Errorf("README says\n%s\nthe table says\n%s", got, want)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add("{{ .Name }} 60 IN A 192.0.2.1", "www.example.org.")
	f.Add("{{ range .Match }}{{ . }}{{ end }} IN TXT {{ $.Zone }}", "a.")
	f.Fuzz(func(t *testing.T, text, name string) {
		r, err := newRecord(text)
		if err != nil || strings.Contains(text, "range") || len(text) > 200 {
			return // loops may be endless only by the operator's will
		}
		r.questionOnly()
		rr, _, err := r.render(&data{Name: name, Zone: ".", Class: "IN", Type: "A", Match: []string{name}})
		if err == nil && rr != nil && r.fixed == rr {
			t.Fatal("the record kept was given away")
		}
	})
}

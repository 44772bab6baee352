package rewrite

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

var update = flag.Bool("update", false, "write what comes out into testdata/matrix.txt")

// chain answers with aliases below and beside the name asked for, and other sections that tell of it.
func chain(name string, _ uint16) *dns.Msg {
	zone := name[strings.IndexByte(name, '.')+1:]
	fill := func(s string) string { return strings.NewReplacer("@", name, "*", zone).Replace(s) }
	return reply(0, fill(`
		@ 100 IN CNAME a.@
		a.@ 200 IN CNAME b.*
		b.* 300 IN A 192.0.2.1`), fill(`
		* 50 IN NS @
		* 60 IN SOA @ root.* 1 2 3 4 5`), fill(`
		@ 10 IN A 192.0.2.2
		a.@ 20 IN MX 5 mx.@
		B.* 30 IN SRV 1 2 3 b.*
		c.* 40 IN PTR @
		d.* 50 IN NAPTR 1 2 "u" "sip" "!a!b!" b.*
		e.* 60 IN DNAME a.@
		f.* 70 IN TXT "x"
		example.com. 80 IN MX 5 www.example.com.`))
}

// TestMatrix plays testdata/matrix.txt: rules, and what they make of a query and of the reply to it, in both lanes. Each story is
// some directives, a line with a question, what is looked up, and the reply, sections of it marked. Rules of which the wire lane
// leaves queries to the other have a line "unpacked".
func TestMatrix(t *testing.T) {
	const file = "testdata/matrix.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "\n\n")
	stories := strings.Split(strings.TrimSpace(rest), "\n\n")
	var out []string
	for _, story := range stories {
		var rules []string
		lines := strings.Split(story, "\n")
		for len(lines) > 0 && !strings.HasPrefix(lines[0], "? ") {
			rules = append(rules, lines[0])
			lines = lines[1:]
		}
		if len(lines) == 0 {
			t.Fatalf("no question in\n%s", story)
		}
		ask := strings.Fields(lines[0])
		query := new(dns.Msg).SetQuestion(ask[1], dns.StringToType[ask[2]])
		query.Id = 1
		from := chain
		if len(ask) > 3 {
			from = func(string, uint16) *dns.Msg { return replies[ask[3]]() }
		}
		c, unpacked := agree(t, strings.Join(rules, "\n"), from, query)
		got := strings.Join(rules, "\n") + "\n" + lines[0] + "\n"
		if unpacked {
			got += "unpacked\n"
		}
		if c.seen != "" {
			got += "> " + c.seen + "\n"
		}
		if c.err != nil {
			got += "error " + c.err.Error() + "\n"
		}
		got += c.reply
		if got != story && !*update {
			t.Errorf("got\n%s\nwant\n%s", got, story)
		}
		out = append(out, got)
	}
	if len(out) < 50 {
		t.Errorf("only %d stories", len(out))
	}
	if *update {
		if err := os.WriteFile(file, []byte(head+"\n\n"+strings.Join(out, "\n\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// replies are others than chain's.
var replies = map[string]func() *dns.Msg{
	"denied": func() *dns.Msg {
		return reply(dns.RcodeNameError, "", "two.test. 60 IN SOA ns.two.test. root.two.test. 1 2 3 4 5")
	},
	"cased": func() *dns.Msg {
		return reply(0, "Below.WEB.Two.Test. 60 IN CNAME X.Sub.Two.Test.", "two.test. 60 IN NS NS.Web.two.test.", "X.Sub.Two.Test. 60 IN A 192.0.2.1")
	},
	"empty":   func() *dns.Msg { return reply(0) },
	"refused": func() *dns.Msg { return reply(dns.RcodeRefused) },
	"failed":  func() *dns.Msg { return nil },
}

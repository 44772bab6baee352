package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// Where an alias below a cache leads to another server block, who has changed that block, or a file of it, and reloads, gets what it says
// now. Answers without an alias are kept.
func TestReloadOfWhatAliasesLeadTo(t *testing.T) {
	const cached = `alias.test:0 {
bind 127.0.0.1
cache
template IN A {
match ^www[.]
answer "{{ .Name }} 3600 IN CNAME www.target.test."
fallthrough
}
template IN A {
answer "{{ .Name }} 3600 IN A 192.0.2.{{ .Message.Id }}"
}
}
`
	dir := t.TempDir()
	put := func(n int) {
		t.Helper()
		zone := fmt.Appendf(nil, "target.test. 3600 IN SOA a b %d 2 3 4 5\nwww.target.test. 3600 IN A 192.0.2.%d\n", n, n)
		if err := os.WriteFile(filepath.Join(dir, "db"), zone, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	template := func(n int) string {
		return cached + fmt.Sprintf("target.test:0 {\nbind 127.0.0.1\ntemplate IN A {\nanswer \"{{ .Name }} 3600 IN A 192.0.2.%d\"\n}\n}", n)
	}
	file := cached + "target.test:0 {\nbind 127.0.0.1\nroot " + dir + "\nfile db\n}"
	put(103)
	i, udp, _, err := CoreDNSServerAndPorts(template(101))
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer r.end()
	id := uint16(1)
	says := func(name, want string) {
		t.Helper()
		q := question(name, dns.TypeA)
		q.Id = id
		id++
		m := ask(t, "udp", udp, q)
		if m == nil || len(m.Answer) == 0 || !strings.HasSuffix(m.Answer[len(m.Answer)-1].String(), "\t"+want) {
			t.Errorf("got %v, want %s", m, want)
		}
	}
	reload := func(corefile string) {
		t.Helper()
		if r.instance, err = r.instance.Restart(NewInput(corefile)); err != nil {
			t.Fatal(err)
		}
	}
	says("one.alias.test.", "192.0.2.1")
	says("www.alias.test.", "192.0.2.101")
	for _, next := range []struct {
		corefile, want string
		number         int // in the file
	}{
		{template(102), "192.0.2.102", 103},
		{file, "192.0.2.103", 103},
		{file, "192.0.2.104", 104},
		{file + "\n", "192.0.2.104", 104},
	} {
		put(next.number)
		reload(next.corefile)
		says("one.alias.test.", "192.0.2.1")
		says("www.alias.test.", next.want)
	}
}

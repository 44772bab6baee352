package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// TestUpdateFailedReload: a reload that fails leaves a zone as it was: signed by the keys it has, with its journal, and
// with its figures.
func TestUpdateFailedReload(t *testing.T) {
	for _, database := range []bool{true, false} {
		t.Run(fmt.Sprint("database ", database), func(t *testing.T) {
			dir := t.TempDir()
			_, key := writeZoneKey(t, dir)
			port, figures := loopback.Port(), loopback.Port()
			more := fmt.Sprintf("prometheus 127.0.0.1:%d\ntransfer {\nto *\n}", figures)
			corefile := func(options string) string {
				text := dynamicCorefile(t, dir, port, more, options)
				if !database {
					text = strings.Replace(text, "database "+filepath.Join(dir, "zone.db"), "", 1)
				}
				return text
			}
			i, _, _ := start(t, corefile("sign key file "+key))
			r := &running{instance: i}
			defer r.end()
			addr := fmt.Sprintf("127.0.0.1:%d", port)
			for n := range 3 {
				if reply := sendUpdate(t, "udp", addr, insert(t, fmt.Sprintf("a%d.example.org. 60 IN A 192.0.2.9", n))); reply.Rcode != 0 {
					t.Fatal(reply)
				}
			}
			state := func() string {
				_, serial := fetched(t, addr, updateKey)
				m := question("a1.example.org.", dns.TypeA)
				m.SetEdns0(1232, true)
				reply := ask(t, "udp", addr, m)
				m = new(dns.Msg).SetIxfr("example.org.", serial-1, "ns1.example.org.", "hostmaster.example.org.")
				increment := ask(t, "tcp", addr, m)
				return fmt.Sprintf("serial %d, %d records in an answer, %d of what changed, metric %s", serial, len(reply.Answer), len(increment.Answer),
					gaugeOf(figures, "coredns_dynupdate_serial"))
			}
			before := state()
			bad := "\nexample.net:0 {\nbind 127.0.0.1\nsecondary {\ntransfer from 127.0.0.1:1\ntsig none.\n}\n}\n"
			for _, options := range []string{"", "journal 0\nsign key file " + key, "sign key file " + key + " nsec3"} {
				if _, err := r.instance.Restart(NewInput(corefile(options) + bad)); err == nil {
					t.Fatal("a key that is not there is no error")
				}
				if after := state(); after != before {
					t.Errorf("%q: %s, before %s", options, after, before)
				}
			}
		})
	}
}

// TestUpdateReloadTerms: after a reload a zone is as the new Corefile says, signed or not, and nothing is told of one
// that is gone.
func TestUpdateReloadTerms(t *testing.T) {
	dir := t.TempDir()
	_, key := writeZoneKey(t, dir)
	port, figures := loopback.Port(), loopback.Port()
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	more := fmt.Sprintf("prometheus 127.0.0.1:%d\ntransfer {\nto *\n}", figures)
	i, _, _ := start(t, dynamicCorefile(t, dir, port, more, ""))
	r := &running{instance: i}
	defer r.end()
	if size := gaugeOf(figures, "coredns_dynupdate_database_bytes"); size == "" || size == "0" {
		t.Errorf("the database has %q octets", size)
	}
	reload := func(corefile string) {
		t.Helper()
		next, err := r.instance.Restart(NewInput(corefile))
		if err != nil {
			t.Fatal(err)
		}
		r.instance = next
	}
	for options, want := range map[string]string{"sign key file " + key: " nsec ", "sign key file " + key + " nsec3": " nsec3 ", "": ""} {
		reload(dynamicCorefile(t, dir, port, more, options))
		if reply := sendUpdate(t, "udp", addr, insert(t, fmt.Sprintf("a%d.example.org. 60 IN A 192.0.2.9", len(options)))); reply.Rcode != 0 {
			t.Fatal(reply)
		}
		var lines []string
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			lines, _ = fetched(t, addr, updateKey)
			text := strings.Join(lines, "\n")
			if signed := strings.Contains(text, " rrsig "); signed == (want != "") && strings.Contains(text, want) {
				lines = nil
				break
			}
		}
		if lines != nil {
			t.Errorf("%q: the zone is\n%s", options, strings.Join(lines, "\n"))
		}
	}
	reload(fmt.Sprintf("example.org:%d {\nbind 127.0.0.1\nprometheus 127.0.0.1:%d\nwhoami\n}", port, figures))
	for _, name := range []string{"serial", "records", "bytes", "database_bytes", "read_only", "notify_pending"} {
		value := ""
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if value = gaugeOf(figures, "coredns_dynupdate_"+name); value == "" {
				break
			}
		}
		if value != "" {
			t.Errorf("%s of a zone that is gone is %s", name, value)
		}
	}
}

// gaugeOf is the value of a metric of example.org., "" if there is none.
func gaugeOf(port int, name string) string {
	value, _ := test.MetricValueLabel(name, "example.org.", test.Scrape(fmt.Sprintf("http://127.0.0.1:%d/metrics", port)))
	return value
}

// TestUpdateKeysThatAreMissing: the log tells at the start which keys of rules nobody has, as a slip in a name is seen
// by nobody else.
func TestUpdateKeysThatAreMissing(t *testing.T) {
	out := captureLog(t)
	dynamic(t, t.TempDir(), "", "allow Missing.example. a.example.org TXT\nallow missing.example. * A\nallow_below other. @ TXT\nself host.example.org. A\nself *.dyn.example.org. A\ndeny none. * A")
	for key, n := range map[string]int{"missing.example.": 1, "host.example.org.": 1, "other.": 0, updateKey: 0, "none.": 0, "*.dyn.example.org.": 0} {
		if text := fmt.Sprintf("Zone example.org.: the tsig plugin has no key %q, so nobody can sign updates with it\n", key); strings.Count(out.String(), text) != n {
			t.Errorf("%q is not there %d times in\n%s", text, n, out)
		}
	}
}

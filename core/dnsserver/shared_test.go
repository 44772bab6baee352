package dnsserver

import (
	"errors"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

// Listeners that share their sockets are warned of, if it matters which of them gets a query.
func TestSharedSockets(t *testing.T) {
	probed(t)
	out := logtest.Capture(t)
	for corefile, want := range map[string]string{
		". {\n@ ::1\n}\n. {\n@ 0:0::1\n}":                         "dns://[::1]:53 and dns://[0:0::1]:53",
		"a. {\n@ 127.0.0.1\n}\nb. {\n@ ::ffff:127.0.0.1\n}":       "dns://127.0.0.1:53 and dns://[::ffff:127.0.0.1]:53",
		"a. {\n@ 0.0.0.0\n}\nb. {\n@ ::\n}":                       "dns://0.0.0.0:53 and dns://[::]:53",
		"a. {\nprobe all\n}\nb. {\n@ ::\n}":                       "dns://:53 and dns://[::]:53",
		"a.:53 {\n@ ::1\n}\na.:053 {\n@ ::1\n}":                   "dns://[::1]:53 and dns://[::1]:053",
		"a.:53 tls://a.:53 {\n@ ::1\n}":                           "dns://[::1]:53 and tls://[::1]:53",
		"https://a.:853 tls://a.:853 {\n@ ::1\n}":                 "https://[::1]:853 and tls://[::1]:853",
		". {\n@ 0.0.0.0 ::\n}":                                    "",
		". {\n@ ::1 127.0.0.1\n}\na. {\n@ ::1\n}":                 "",
		".:0 {\n@ ::1\n}\ntls://.:0 {\n@ ::1\n}":                  "",
		"fe.:53 {\n@ fe80::1%lo\n}\nfe.:53 {\n@ fe80::1%other\n}": "",
		". {\nprobe all\n}\nexample.org:54 {\n@ ::1\n}":           "",
	} {
		out.Take()
		if err := Validate(inputOf(strings.ReplaceAll(corefile, "@", "probe on"))); errors.Is(err, errLeftOut) {
			continue
		} else if err != nil {
			t.Errorf("%q: %v", corefile, err)
		}
		_, got, _ := strings.Cut(out.String(), "[WARNING] ")
		if want != "" {
			want += " listen on the same address: each gets a part of the queries\n"
		}
		if got != want {
			t.Errorf("%q:\n got %s\nwant %s", corefile, got, want)
		}
	}
}

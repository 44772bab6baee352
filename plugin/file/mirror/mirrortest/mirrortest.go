// Package mirrortest checks what plugins answer that mirror zones of a provider. It is for tests. Start at Answers.
package mirrortest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// Answers checks what h answers. Cases are by questions, as "www.example.org. A"; an answer is the return code and the sorted data of the
// answer section's records, or "nothing" if nothing is written.
func Answers(t *testing.T, h plugin.Handler, cases map[string]string) {
	t.Helper()
	for question, want := range cases {
		name, typ, _ := strings.Cut(question, " ")
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		h.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion(name, dns.StringToType[typ]))
		got := "nothing"
		if rec.Msg != nil {
			got = answer(rec.Msg)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", question, got, want)
		}
	}
}

func answer(m *dns.Msg) string {
	all := []string{dns.RcodeToString[m.Rcode]}
	for _, rr := range m.Answer {
		all = append(all, strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	slices.Sort(all[1:])
	return strings.Join(all, " ")
}

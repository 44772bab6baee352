package test

import (
	"testing"

	"github.com/miekg/dns"
)

// A rule of acl is for the name that is looked up, and with asked for the one that the client sent, too; in either
// lane, the second of which is that of erratic.
func TestACLBehindRewrite(t *testing.T) {
	for _, source := range []string{"whoami", "erratic {\ndrop 0\n}"} {
		for _, tc := range []struct {
			zone, option, name string
			want               int
		}{
			{"asked.test", "", "www.asked.test.", dns.RcodeSuccess},
			{"asked.test", "asked", "www.asked.test.", dns.RcodeRefused},
			{"asked.test", "asked", "WWW.Asked.test.", dns.RcodeRefused},
			{"asked.test", "asked", "www.looked.test.", dns.RcodeSuccess},
			{"looked.test", "", "www.asked.test.", dns.RcodeRefused},
			{"looked.test", "asked", "www.asked.test.", dns.RcodeRefused},
			{"looked.test", "", "www.looked.test.", dns.RcodeRefused},
			{"other.test", "asked", "www.asked.test.", dns.RcodeSuccess},
		} {
			_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nrewrite name suffix .asked.test .looked.test answer auto\nacl "+tc.zone+" {\nblock\n"+tc.option+"\n}\n"+source+"\n}")
			if m := ask(t, "udp", udp, question(tc.name, dns.TypeA)); m == nil || m.Rcode != tc.want || m.Question[0].Name != tc.name {
				t.Errorf("%s, %+v: got %v", source, tc, m)
			}
		}
	}
}

package log

import (
	"bytes"
	"encoding/json"
	"testing"

	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// A line as a JSON object has the format's text as its message, and the facts as fields.
func TestFields(t *testing.T) {
	for name, tc := range map[string]struct {
		next  test.Handler
		rcode any
		size  float64
	}{
		"answer":        {success, "NOERROR", 64},
		"denial":        {denial, "NXDOMAIN", 33},
		"error to come": {refused, "REFUSED", 33},
		"no reply":      {drop, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			capture(t)
			out := new(bytes.Buffer)
			clog.SetJSON(out)
			defer clog.SetJSON(nil)
			l := Logger{Next: tc.next, Rules: []Rule{{NameScope: ".", Format: "{name} from {remote}", Class: classes(response.All)}}}
			l.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("WWW.example.org.", dns.TypeA))
			clog.Sync()
			got := map[string]any{}
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatalf("%s: %v", out, err)
			}
			if took, ok := got["duration_seconds"].(float64); !ok || took <= 0 || took > 60 {
				t.Errorf("it took %v", got["duration_seconds"])
			}
			if _, ok := got["rcode"]; !ok {
				t.Errorf("no rcode: %v", got)
			}
			delete(got, "duration_seconds")
			delete(got, "time")
			for k, want := range map[string]any{
				"level": "INFO", "msg": "www.example.org. from 10.240.0.1", "client_ip": "10.240.0.1", "qname": "www.example.org.", "qtype": "A",
				"rcode": tc.rcode, "request_size_bytes": 33.0, "response_size_bytes": tc.size,
			} {
				if got[k] != want {
					t.Errorf("%s is %v, want %v", k, got[k], want)
				}
				delete(got, k)
			}
			if len(got) > 0 {
				t.Errorf("and %v", got)
			}
		})
	}
}

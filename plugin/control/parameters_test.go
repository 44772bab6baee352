package control

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// FuzzParameters: whatever a request asks for, it is refused, or what comes of it can be worked with.
func FuzzParameters(f *testing.F) {
	for _, seed := range []string{
		"name=example.org&type=MX&do=true&client=192.0.2.1:53&transport=TLS",
		"name=example.org.&type=TYPE65280&client=2001:db8::%251",
		"name=a%5C&type=a&rcode=nxdomain&client=192.0.2.0/24&slower=100ms&failed=true&n=5",
		"name=%5C300.&rcode=BADVERS&client=::ffff:192.0.2.1/96&slower=-1h",
		"name=%5C270.&type=A",
		"name=.&n=99999999999999999999&do=yes&client=%5B::1%5D:99999",
		"name=a..b&name=c&type=ANY&n=-1&all=true;zone=x",
		"%zz=1&name=%00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = &url.URL{Path: "/", RawQuery: query}
		refused := func(err error) bool {
			var why *refusal
			if err != nil && (!errors.As(err, &why) || why.Error() == "") {
				t.Errorf("refused with %v", err)
			}
			return err != nil
		}
		if q, err := questionOf(r.FormValue); !refused(err) {
			if _, err := wire.LowerName(q.Name); err != nil || q.Type == 0 {
				t.Errorf("question %q %d: %v", q.Name, q.Type, err)
			}
		}
		if n, err := number(r, "n", 7, 100); !refused(err) && (n < 1 || n > 100) {
			t.Errorf("number %d", n)
		}
		if name, err := nameParameter(r, "a name"); !refused(err) && wire.NameLen(name) != len(name) {
			t.Errorf("name %q", name)
		}
		if word, err := oneOf(r, "transport", "udp", "tcp"); !refused(err) && word != "udp" && word != "tcp" {
			t.Errorf("word %q", word)
		}
		if m, err := newMatcher(r.FormValue); err == nil {
			if m.zone != nil && wire.NameLen(m.zone) != len(m.zone) || m.client.IsValid() && m.client != m.client.Masked() {
				t.Errorf("matcher %+v", m)
			}
		}
	})
}

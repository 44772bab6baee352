package pprof

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		input string
		want  settings
		err   string
	}{
		{"pprof", settings{addr: "localhost:6053"}, ""},
		{"pprof :1234", settings{addr: ":1234"}, ""},
		{"pprof {\n}", settings{addr: "localhost:6053"}, ""},
		{"pprof { block\n}", settings{addr: "localhost:6053", blockRate: 1}, ""},
		{"pprof :1234 {\nblock 20\n}", settings{addr: ":1234", blockRate: 20}, ""},
		{"pprof :1234 -1", settings{}, "Wrong argument count"},
		{"pprof /foo", settings{}, "address /foo: missing port in address"},
		{"pprof :nosuch", settings{}, `invalid port "nosuch" in ":nosuch": must be a number from 0 to 65535`},
		{"pprof {\na b\n}", settings{}, "unknown property 'a'"},
		{"pprof {\nblock 20 30\n}", settings{}, "Wrong argument count"},
		{"pprof {\nblock x\n}", settings{}, "Testfile:2 - Error during parsing: property 'block' invalid integer value 'x': must be a number of nanoseconds"},
		{"pprof\npprof", settings{}, "this plugin can only be used once per Server Block: 'pprof' stands at Testfile:1 already"},
	} {
		s := settings{addr: defaultAddr}
		err := directive.Parse(caddy.NewTestController("dns", tc.input), &s)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
			}
			continue
		}
		if err != nil || s != tc.want {
			t.Errorf("%q: got %+v, %v", tc.input, s, err)
		}
	}
}

func TestHandlers(t *testing.T) {
	mux := http.NewServeMux()
	for pattern, h := range handlers() {
		mux.Handle(pattern, h)
	}
	srv := httptest.NewServer(mux)
	defer srv.Close()
	client := srv.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/debug/pprof":                   {302, ""},
		"/debug/pprof/":                  {200, "goroutine"},
		"/debug/pprof/cmdline":           {200, filepath.Base(os.Args[0])},
		"/debug/pprof/goroutine?debug=1": {200, "goroutine profile: total"},
		"/debug/pprof/block?debug=1":     {200, "cycles/second"},
		"/debug/pprof/symbol":            {200, "num_symbols"},
		"/debug/pprof/no-such":           {404, ""},
		"/debug/pprof/profile?seconds=1": {200, ""},
		"/metrics":                       {404, ""},
	} {
		resp, err := client.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want.status || !strings.Contains(string(body), want.text) {
			t.Errorf("%s: got %d %.80q", path, resp.StatusCode, body)
		}
		if loc := resp.Header.Get("Location"); want.status == 302 && loc != "/debug/pprof/" {
			t.Errorf("redirected to %q", loc)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

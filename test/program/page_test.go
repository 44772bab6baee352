package program

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// pageServer is a server with a status page at an address, and with something to show.
func pageServer(t *testing.T) (s *server, url string) {
	t.Helper()
	addr := loopback.Addr()
	s = serve(t, ".:PORT {\nbind 127.0.0.1\ncontrol ctl.sock {\nstatus "+addr+"\n}\nprometheus "+loopback.Addr()+"\ncache 30\nwhoami\n}\n"+
		"none.example:PORT {\nbind 127.0.0.1\ntemplate ANY ANY {\nrcode NXDOMAIN\n}\n}\n")
	for range 7 {
		s.ask("udp", "often.example.org.", dns.TypeTXT)
	}
	s.ask("udp", "<b>.none.example.", dns.TypeA)
	return s, "http://" + addr + "/"
}

// The page is read only, answers under an address only, loads nothing from elsewhere, and its data is there.
func TestStatusPage(t *testing.T) {
	_, url := pageServer(t)
	ask := func(method, path, host string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply, string(text)
	}
	reply, text := ask("GET", "", "")
	if reply.StatusCode != 200 || !strings.HasPrefix(reply.Header.Get("Content-Security-Policy"), "default-src 'none';") {
		t.Errorf("got %v", reply)
	}
	for _, m := range regexp.MustCompile(`(?:src|href)=|url\(|@import|https?://[^\s"']*`).FindAllString(text, -1) {
		if m != "http://www.w3.org/2000/svg" { // a name, which nothing is loaded from
			t.Errorf("the page has %s", m)
		}
	}
	_, text = ask("GET", "data", "localhost:1")
	var data struct {
		Queries uint64
		Names   []struct {
			Key   string
			Count uint64
		}
		Latency []struct{ Count uint64 }
		Caches  []struct{ Zones []string }
	}
	if err := json.Unmarshal([]byte(text), &data); err != nil || data.Queries != 8 || len(data.Names) != 2 || data.Names[0].Key != "often.example.org." || data.Names[0].Count != 7 ||
		len(data.Latency) == 0 || len(data.Caches) != 1 {
		t.Errorf("%v, data is %s", err, text)
	}
	for _, tc := range []struct {
		method, path, host string
		want               int
	}{
		{"POST", "", "", 405}, {"POST", "data", "", 405}, {"GET", "v1/status", "", 404}, {"POST", "v1/drain", "", 404},
		{"GET", "data", "name.example", 403}, {"GET", "", "name.example:80", 403}, {"GET", "", "[::1]:80", 200},
	} {
		if reply, _ := ask(tc.method, tc.path, tc.host); reply.StatusCode != tc.want {
			t.Errorf("%v: got %s", tc, reply.Status)
		}
	}
}

// A browser shows what there is. What clients ask for is text, whatever it looks like.
func TestStatusPageInBrowser(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("no browser: apt-get install chromium")
	}
	_, url := pageServer(t)
	out, err := exec.CommandContext(t.Context(), browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--virtual-time-budget=5000", "--dump-dom", url).Output()
	dom := string(out)
	if err != nil {
		t.Skipf("the browser does not run here: %v", err)
	}
	for _, want := range []string{"often.example.org.", "NXDOMAIN", "&lt;b&gt;.none.example.", `,39.0 120.0,39.0" fill="none"`, "8 in all"} {
		if !strings.Contains(dom, want) {
			t.Errorf("%s is missing in\n%s", want, dom)
		}
	}
}

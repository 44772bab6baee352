package endpoint

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
)

// instance does with leases what caddy does with the callbacks of an instance.
type instance struct {
	name   string
	leases []*Lease
}

func newInstance(name string, specs ...Spec) *instance {
	i := &instance{name: name}
	for _, s := range specs {
		i.leases = append(i.leases, New(i, s))
	}
	return i
}

func (i *instance) each(f func(*Lease) error) error {
	for _, l := range i.leases {
		if err := f(l); err != nil {
			return err
		}
	}
	return nil
}

func (i *instance) start() error { return i.each((*Lease).Open) }

// restart replaces i by next, which fails to start for another reason if fail is set.
func (i *instance) restart(next *instance, fail bool) error {
	if err := i.each((*Lease).Restarting); err != nil {
		return err
	}
	err := next.start()
	if err == nil && fail {
		err = errors.New("port is taken")
	}
	if err != nil {
		i.each((*Lease).RestartFailed)
		return err
	}
	return i.each((*Lease).Shutdown)
}

func (i *instance) end() {
	i.each((*Lease).Shutdown)
	i.each((*Lease).FinalShutdown)
}

// says is a handler that answers with text.
func says(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) })
}

func spec(addr, path, text string) Spec {
	return Spec{Addr: addr, Handlers: map[string]http.Handler{path: says(text)}}
}

// get is what a new connection gets for addr and path: the text, a status, or "refused".
func get(addr, path string) string {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 3 * time.Second}
	resp, err := client.Get("http://" + addr + path)
	if err != nil {
		return "refused"
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return resp.Status[:3]
	}
	return string(body)
}

func want(t *testing.T, addr, path, text string) {
	t.Helper()
	if got := get(addr, path); got != text {
		t.Errorf("%s: got %q, want %q", path, got, text)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// servers is how many servers the table has.
func servers() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.servers)
}

func TestLeasesOfAnInstanceShareAServer(t *testing.T) {
	addr := loopback.Addr()
	one := newInstance("one", spec(addr, "/health", "OK"), spec(addr, "/ready", "yes"), spec(addr, "/ready", "second"))
	must(t, one.start())
	must(t, one.start()) // opening twice does no harm
	want(t, addr, "/health", "OK")
	want(t, addr, "/ready", "yes")
	want(t, addr, "/other", "404")
	if n := servers(); n != 1 {
		t.Errorf("%d servers", n)
	}
	one.each((*Lease).Shutdown)
	want(t, addr, "/health", "OK") // until the final shutdown
	must(t, one.leases[0].FinalShutdown())
	want(t, addr, "/health", "404")
	want(t, addr, "/ready", "yes")
	one.end()
	want(t, addr, "/ready", "refused")
	if n := servers(); n != 0 {
		t.Errorf("%d servers are left", n)
	}
}

func TestHandover(t *testing.T) {
	addr, gone, fresh := loopback.Addr(), loopback.Addr(), loopback.Addr()
	one := newInstance("one", spec(addr, "/", "one"), spec(gone, "/", "gone"))
	two := newInstance("two", spec(addr, "/", "two"), spec(fresh, "/", "fresh"))
	must(t, one.start())

	must(t, one.each((*Lease).Restarting))
	must(t, two.start())
	want(t, addr, "/", "one") // which still serves DNS
	want(t, fresh, "/", "fresh")
	must(t, one.each((*Lease).Shutdown))
	want(t, addr, "/", "two")
	want(t, gone, "/", "refused")
	want(t, fresh, "/", "fresh")
	if len(all.replaced) != 0 || two.leases[0].heirOf != nil {
		t.Errorf("the old instance is remembered: %v", all.replaced)
	}
	two.end()
	want(t, addr, "/", "refused")
	if n := servers(); n != 0 {
		t.Errorf("%d servers are left", n)
	}
}

func TestFailedRestartChangesNothing(t *testing.T) {
	addr, fresh := loopback.Addr(), loopback.Addr()
	one := newInstance("one", spec(addr, "/", "one"))
	must(t, one.start())
	for range 3 {
		if one.restart(newInstance("two", spec(addr, "/", "two"), spec(fresh, "/", "fresh")), true) == nil {
			t.Fatal("no error")
		}
		want(t, addr, "/", "one")
		want(t, fresh, "/", "refused")
	}
	// What failed was forgotten: a later restart and the end go as ever.
	three := newInstance("three", spec(addr, "/", "three"))
	must(t, one.restart(three, false))
	want(t, addr, "/", "three")
	three.end()
	want(t, addr, "/", "refused")
	if n := servers(); n != 0 {
		t.Errorf("%d servers are left", n)
	}
}

func TestFailureAfterTheHandoverIsNone(t *testing.T) {
	addr := loopback.Addr()
	one, two := newInstance("one", spec(addr, "/", "one")), newInstance("two", spec(addr, "/", "two"))
	must(t, one.start())
	must(t, one.restart(two, false))
	must(t, one.each((*Lease).RestartFailed)) // as another plugin's shutdown failed
	want(t, addr, "/", "two")
	two.end()
}

// No request fails while instances come and go.
func TestNoGap(t *testing.T) {
	addr := loopback.Addr()
	specs := []Spec{spec(addr, "/a", "OK"), spec(addr, "/b", "OK"), spec(addr, "/c", "OK")}
	current := newInstance("0", specs...)
	must(t, current.start())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, path := range []string{"/a", "/b", "/c"} {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := get(addr, path); got != "OK" {
					t.Errorf("%s: got %q", path, got)
					return
				}
			}
		})
	}
	for i := range 200 {
		next := newInstance(fmt.Sprint(i), specs...)
		if err := current.restart(next, i%3 == 0); err == nil {
			current = next
		}
	}
	close(stop)
	wg.Wait()
	current.end()
}

func TestBindFailure(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // without SO_REUSEPORT
	must(t, err)
	defer ln.Close()
	one := newInstance("one", spec(ln.Addr().String(), "/", "one"))
	if err := one.start(); err == nil || !strings.Contains(err.Error(), "opening the endpoint: listen tcp "+ln.Addr().String()) {
		t.Errorf("got error %v", err)
	}
	var failed error
	s := spec(ln.Addr().String(), "/", "one")
	s.Failed = func(err error) { failed = err }
	two := newInstance("two", s)
	if err := two.start(); err != nil || failed == nil {
		t.Errorf("got error %v, told %v", err, failed)
	}
	two.end()
}

func TestAnyPort(t *testing.T) {
	var addrs []net.Addr
	s := spec("127.0.0.1:0", "/", "one")
	s.Opened = func(a net.Addr) { addrs = append(addrs, a) }
	one, two := newInstance("one", s, s), newInstance("two", s)
	must(t, one.start())
	must(t, two.start())
	if len(addrs) != 3 || addrs[0].String() != addrs[1].String() || addrs[0].String() == addrs[2].String() {
		t.Errorf("got addresses %v", addrs)
	}
	three := newInstance("three", s)
	must(t, one.restart(three, false))
	if addrs[3].String() != addrs[0].String() {
		t.Errorf("got address %v after a restart, want %v", addrs[3], addrs[0])
	}
	three.end()
	two.end()
}

// An instance that was stopped without a word does not stand in the way of one that starts later.
func TestForgottenInstance(t *testing.T) {
	addr := loopback.Addr()
	one, two := newInstance("one", spec(addr, "/", "one")), newInstance("two", spec(addr, "/", "two"))
	must(t, one.start())
	must(t, two.start())
	want(t, addr, "/", "two")
	two.end()
	want(t, addr, "/", "one")
	one.end()
	want(t, addr, "/", "refused")
}

func TestOpenedAndClosed(t *testing.T) {
	addr := loopback.Addr()
	open := map[string]int{}
	counted := func(name string) Spec {
		s := spec(addr, "/"+name, name)
		s.Opened = func(net.Addr) { open[name]++ }
		s.Closed = func() { open[name]-- }
		return s
	}
	one := newInstance("one", counted("a"), counted("b"))
	must(t, one.start())
	must(t, one.start())
	if open["a"] != 1 || open["b"] != 1 {
		t.Errorf("started: %v", open)
	}
	if one.restart(newInstance("two", counted("c")), true) == nil || open["c"] != 0 || open["a"] != 1 {
		t.Errorf("failed restart: %v", open)
	}
	three := newInstance("three", counted("c"))
	must(t, one.restart(three, false))
	if open["a"] != 0 || open["b"] != 0 || open["c"] != 1 {
		t.Errorf("restarted: %v", open)
	}
	three.end()
	three.end()
	if open["c"] != 0 {
		t.Errorf("ended: %v", open)
	}
}

func TestBeforeClose(t *testing.T) {
	addr := loopback.Addr()
	s := spec(addr, "/", "one")
	said := "not called"
	s.BeforeClose = func() { said = get(addr, "/") }
	one := newInstance("one", s)
	must(t, one.start())
	one.end()
	if said != "one" {
		t.Errorf("while the end was waited for: %q", said)
	}
	want(t, addr, "/", "refused")
}

// A lease that was never to open, as its configuration was still set up when the process ended, holds nothing up.
func TestBeforeCloseOfNothing(t *testing.T) {
	s := spec(loopback.Addr(), "/", "hello")
	s.BeforeClose = func() { t.Error("it is called") }
	must(t, New(nil, s).FinalShutdown())
}

func TestClosingWaitsForRequestsButNotForIdleConnections(t *testing.T) {
	addr := loopback.Addr()
	began, finish := make(chan struct{}), make(chan struct{})
	one := newInstance("one", Spec{Addr: addr, Handlers: map[string]http.Handler{
		"/slow": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(began)
			<-finish
			io.WriteString(w, "done")
		}),
		"/": says("one"),
	}})
	must(t, one.start())
	idle := &http.Client{Transport: &http.Transport{}}
	resp, err := idle.Get("http://" + addr + "/")
	must(t, err)
	io.ReadAll(resp.Body)
	resp.Body.Close() // the connection stays open
	silent, err := net.Dial("tcp", addr)
	must(t, err)
	defer silent.Close()
	want(t, addr, "/", "one") // so that the server has accepted it

	answer := make(chan string)
	go func() { answer <- get(addr, "/slow") }()
	<-began
	ended := make(chan struct{})
	begin := time.Now()
	go func() { one.end(); close(ended) }()
	select {
	case <-ended:
		t.Fatal("ended while a request was at work")
	case <-time.After(50 * time.Millisecond):
	}
	close(finish)
	if got := <-answer; got != "done" {
		t.Errorf("the request that was at work got %q", got)
	}
	<-ended
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("the end took %s", took)
	}
}

func TestLongRequests(t *testing.T) {
	addr := loopback.Addr()
	deadlines := func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
			t.Error("a long request was ended")
		case <-time.After(timeout + 300*time.Millisecond):
		}
		io.WriteString(w, "late")
	}
	one := newInstance("one", Spec{Addr: addr, Long: true, Handlers: map[string]http.Handler{"/": http.HandlerFunc(deadlines)}})
	must(t, one.start())
	defer one.end()
	resp, err := http.Get("http://" + addr + "/")
	must(t, err)
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "late" {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestWebConfig(t *testing.T) {
	dir, err := test.WritePEMFiles(t)
	must(t, err)
	config := filepath.Join(dir, "web.yml")
	must(t, os.WriteFile(config, []byte("tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n"), 0o600))
	addr := loopback.Addr()
	s := spec(addr, "/", "secret")
	s.WebConfig = config
	one := newInstance("one", s)
	must(t, one.start())
	if got := getTLS(addr); got != "secret" {
		t.Errorf("got %q", got)
	}
	two := newInstance("two", s)
	must(t, one.restart(two, false))
	if got := getTLS(addr); got != "secret" {
		t.Errorf("after a restart: %q", got)
	}
	// Without TLS it is another server on the same address.
	three := newInstance("three", spec(addr, "/", "plain"))
	must(t, two.restart(three, false))
	want(t, addr, "/", "plain")
	three.end()

	s.WebConfig = filepath.Join(dir, "none.yml")
	if err := newInstance("four", s).start(); err == nil || !strings.Contains(err.Error(), "none.yml") {
		t.Errorf("got error %v", err)
	}
}

// Leases of an instance do not listen beside each other: of two that serve the same, the first one's web configuration counts, also
// after a restart. What would be served in another way than it wants is refused.
func TestUnlikeWebConfigs(t *testing.T) {
	config := filepath.Join(t.TempDir(), "web.yml")
	must(t, os.WriteFile(config, []byte("basic_auth_users:\n  u: $2b$12$hNf2lSsxfm0.i4a.1kVpSOVyBCfIB51VRjgBUyv6kdnyTlgWj81Ay\n"), 0o600))
	addr := loopback.Addr()
	plain, guarded := spec(addr, "/seen", "seen"), spec(addr, "/seen", "seen")
	guarded.WebConfig = config
	always := func(text string) {
		t.Helper()
		for range 20 {
			want(t, addr, "/seen", text)
		}
	}
	before := servers()
	one := newInstance("one", plain, guarded)
	must(t, one.start())
	always("seen")
	two := newInstance("two", guarded, plain)
	must(t, one.restart(two, false))
	always("401")
	if n := servers() - before; n != 1 {
		t.Errorf("%d servers", n)
	}
	two.end()

	other := spec(addr, "/other", "guarded")
	other.WebConfig = config
	three := newInstance("three", plain, other)
	if err := three.start(); err == nil || !strings.Contains(err.Error(), addr) {
		t.Errorf("got error %v", err)
	}
	always("seen")
	want(t, addr, "/other", "404")
	three.end()
}

func TestManage(t *testing.T) {
	addr := loopback.Addr()
	c := caddy.NewTestController("dns", "")
	l := Manage(c, spec(addr, "/", "one"))
	if l.owner != l {
		t.Errorf("without the server type, the lease is an instance of its own")
	}
	must(t, l.Open())
	want(t, addr, "/", "one")
	l.Close()
	want(t, addr, "/", "refused")
}

// Who has connected to a server that ends is answered, also if nobody has taken the connection yet: another one has the
// address, so he does not expect that it ends (SIGUSR2).
func TestQueuedConnections(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems cannot be told where connections go")
	}
	open := func(addr string) *server {
		s, err := newServer(addr, "")
		if err != nil {
			t.Fatal(err)
		}
		s.add(New(nil, spec(addr, "/", "hello")), false)
		return s
	}
	s := open("127.0.0.1:0")
	addr := s.addr().String()
	var conns [10]net.Conn
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", addr); err != nil {
			t.Fatal(err)
		}
		io.WriteString(conns[i], "GET / HTTP/1.0\r\n\r\n")
	}
	next := open(addr)
	next.start()
	s.start()
	s.stop()
	for i, c := range conns {
		c.SetDeadline(time.Now().Add(3 * time.Second))
		if b, err := io.ReadAll(c); !strings.HasSuffix(string(b), "hello") {
			t.Errorf("connection %d: got %q, %v", i, b, err)
		}
		c.Close()
	}
	if got := get(addr, "/"); got != "hello" {
		t.Errorf("the next one answers %q", got)
	}
	next.stop()
}

// Leases that end one by one, without a request in between, cost nothing but for those that are left: thousands of them share an
// endpoint. What answers is put together by the next request; one that is at work when the last lease ends finds it, too.
func TestLeasesEndOneByOne(t *testing.T) {
	addr := loopback.Addr()
	one := newInstance("one", spec(addr, "/ready", "first"), spec(addr, "/ready", "second"), spec(addr, "/ready", "third"))
	must(t, one.start())
	defer one.end()
	want(t, addr, "/ready", "first")
	s := one.leases[0].server
	one.leases[0].Close()
	if s.mux.Load() != nil {
		t.Error("it is put together before anybody asks")
	}
	want(t, addr, "/ready", "second")
	one.leases[1].Close()
	one.leases[2].Close()
	if w := httptest.NewRecorder(); s.mux.Load() == nil {
		t.Error("nothing is left")
	} else if s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ready", nil)); w.Body.String() != "third" {
		t.Errorf("the last request got %q", w.Body)
	}
}

package store

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client"
	"github.com/coredns/coredns/plugin/pkg/eventually"

	api "k8s.io/api/core/v1"
)

func clusterIP(name, ip string) *api.Service {
	return &api.Service{ObjectMeta: named("ns1", name), Spec: api.ServiceSpec{ClusterIP: ip}}
}

func (s *Store) has(name string) bool { return s.Service([]byte("ns1"), []byte(name)) != nil }

func (s *Store) at(name string) string {
	if svc := s.Service([]byte("ns1"), []byte(name)); svc != nil && len(svc.ClusterIPs()) > 0 {
		return svc.ClusterIPs()[0].String()
	}
	return ""
}

// TestFollow reads everything in every way that servers offer it, and follows a change,
// an addition and a deletion.
func TestFollow(t *testing.T) {
	for _, tc := range []struct {
		name                  string
		protobuf, noStreaming bool
		pages                 int
	}{
		{"stream of JSON", false, false, 0},
		{"stream of protobuf", true, false, 0},
		{"list of JSON", false, true, 0},
		{"list of protobuf in pages", true, true, 3},
		{"list of JSON in pages", false, true, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFakeAPI(t)
			f.protobuf, f.noStreaming, f.pages = tc.protobuf, tc.noStreaming, tc.pages
			f.put(&api.Namespace{ObjectMeta: named("", "ns1")})
			for i := range 10 {
				f.put(clusterIP(fmt.Sprintf("web-%d", i), fmt.Sprintf("192.0.2.%d", i)))
			}
			f.put(newSlice("ns1", "web-1-a", "web-1", endpoint("198.51.100.1")))
			f.put(pod("ns1", "p1", "198.51.100.1"))
			s := start(t, everythingLocal(), f.client())
			awaitSync(t, s)
			if len(s.Services()) != 10 || !s.Exposed([]byte("ns1")) || s.PodAt(addr("198.51.100.1")) == nil {
				t.Fatalf("%d services", len(s.Services()))
			}
			if x := s.Slices([]byte("ns1"), []byte("web-1")); x.Next() == nil {
				t.Error("no slice")
			}
			f.put(clusterIP("web-1", "192.0.2.100"))
			f.put(clusterIP("new", "192.0.2.101"))
			f.remove(clusterIP("web-2", "192.0.2.2"))
			eventually.Holds(t, "changes", func() bool {
				return s.at("web-1") == "192.0.2.100" && s.has("new") && !s.has("web-2")
			})
			eventually.Holds(t, "events", func() bool { return s.Stats().Events == 3 })
			if st := s.Stats(); st.Gaps != 0 || time.Since(st.LastEvent) > time.Minute {
				t.Errorf("stats %+v", st)
			}
			wantQuery := "sendInitialEvents=true"
			if tc.noStreaming {
				wantQuery = "limit=500&resourceVersion=0"
			}
			if f.seen(wantQuery) == 0 {
				t.Errorf("no request with %s in %q", wantQuery, f.requests)
			}
		})
	}
}

func everythingLocal() Config {
	c := everything()
	c.Multicluster = false
	return c
}

// TestWirePattern sees the first requests in the form that API servers know from other clients.
func TestWirePattern(t *testing.T) {
	f := newFakeAPI(t)
	s := start(t, Config{Endpoints: true, Pods: true, Labels: "tier=front", NamespaceLabels: "dns=yes"}, f.client())
	awaitSync(t, s)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.requests) != 4 {
		t.Errorf("%d requests: %q", len(f.requests), f.requests)
	}
	for _, r := range f.requests {
		for _, part := range []string{"watch=true", "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "allowWatchBookmarks=true", "timeoutSeconds="} {
			if !strings.Contains(r, part) {
				t.Errorf("%s is not in %s", part, r)
			}
		}
		if strings.Contains(r, "resourceVersion=") {
			t.Errorf("a version in %s", r)
		}
		selector := "labelSelector=tier%3Dfront"
		if strings.HasPrefix(r, "namespaces") {
			selector = "labelSelector=dns%3Dyes"
		}
		if !strings.Contains(r, selector) {
			t.Errorf("%s is not in %s", selector, r)
		}
		if got := strings.Contains(r, "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed%2Cstatus.phase%21%3DUnknown"); got != strings.HasPrefix(r, "pods") {
			t.Errorf("field selector in %s: %v", r, got)
		}
	}
}

// TestMulticlusterWatches sees that one watch of slices feeds both indexes, and that without endpoints it is
// narrowed to imported services.
func TestMulticlusterWatches(t *testing.T) {
	for _, tc := range []struct {
		config Config
		want   string
	}{
		{Config{Multicluster: true, Endpoints: true}, ""},
		{Config{Multicluster: true}, "labelSelector=multicluster.kubernetes.io%2Fservice-name&"},
		{Config{Multicluster: true, Labels: "a=b"}, "labelSelector=a%3Db%2Cmulticluster.kubernetes.io%2Fservice-name&"},
	} {
		f := newFakeAPI(t)
		awaitSync(t, start(t, tc.config, f.client()))
		if f.seen("endpointslices watch") != 1 || f.seen("serviceimports watch") != 1 {
			t.Errorf("requests: %q", f.requests)
		}
		if tc.want != "" && f.seen("endpointslices watch allowWatchBookmarks=true&"+tc.want) != 1 {
			t.Errorf("no %s in %q", tc.want, f.requests)
		}
		if tc.want == "" && f.seen("service-name") != 0 {
			t.Errorf("narrowed: %q", f.requests)
		}
	}
}

// TestUnreadable leaves out an object that is not what it should be, and says so once.
func TestUnreadable(t *testing.T) {
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	f.put(garbled{clusterIP("broken", "192.0.2.2")})
	log := &lines{}
	s := start(t, Config{Log: log}, f.client())
	awaitSync(t, s)
	f.put(garbled{clusterIP("broken", "192.0.2.3")})
	f.put(clusterIP("web", "192.0.2.4"))
	eventually.Holds(t, "what follows", func() bool { return s.at("web") == "192.0.2.4" })
	if len(log.all) != 1 || len(log.with("leaving out one of services that cannot be read (ns1/broken)")) != 1 {
		t.Errorf("log: %q", log.all)
	}
	// One that could be read once is deleted.
	f.put(clusterIP("broken", "192.0.2.5"))
	eventually.Holds(t, "a good one", func() bool { return s.at("broken") == "192.0.2.5" })
	// It stays when all is read again, as the API still has it.
	f.put(garbled{clusterIP("broken", "192.0.2.6")})
	for _, noStreaming := range []bool{false, true} {
		f.with(func() { f.noStreaming = noStreaming })
		f.put(clusterIP("goes", "192.0.2.7"))
		eventually.Holds(t, "a change", func() bool { return s.has("goes") })
		f.with(func() { delete(f.objects["services"], "ns1/goes") })
		f.forget()
		f.endWatches()
		eventually.Holds(t, "a gap", func() bool { return !s.has("goes") })
		f.put(clusterIP("web", "192.0.2.8"))
		eventually.Holds(t, "what follows the gap", func() bool { return s.at("web") == "192.0.2.8" })
		if s.at("broken") != "192.0.2.5" {
			t.Error("what is there went, as it could not be read")
		}
		f.put(clusterIP("web", "192.0.2.4"))
		eventually.Holds(t, "the web", func() bool { return s.at("web") == "192.0.2.4" })
	}
	f.remove(garbled{clusterIP("broken", "192.0.2.5")})
	eventually.Holds(t, "its end", func() bool { return !s.has("broken") })
}

// garbled is a service whose JSON is of another form.
type garbled struct{ *api.Service }

func (b garbled) MarshalJSON() ([]byte, error) {
	return []byte(`{"metadata":{"name":"broken","namespace":"ns1","resourceVersion":"` + b.ResourceVersion + `"},"spec":{"ports":"none"}}`), nil
}

// TestResume ends the watches: they go on where they stopped, and nothing is read again.
func TestResume(t *testing.T) {
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	s := start(t, Config{Endpoints: true}, f.client())
	awaitSync(t, s)
	f.put(clusterIP("web", "192.0.2.2"))
	eventually.Holds(t, "first change", func() bool { return s.at("web") == "192.0.2.2" })
	f.endWatches()
	f.put(clusterIP("web", "192.0.2.3"))
	f.put(clusterIP("more", "192.0.2.4"))
	eventually.Holds(t, "changes from between", func() bool { return s.at("web") == "192.0.2.3" && s.has("more") })
	if f.seen("services watch allowWatchBookmarks=true&resourceVersion=102&") != 1 {
		t.Errorf("not gone on with at the version of the last event: %q", f.requests)
	}
	f.mu.Lock()
	whole := 0
	for _, r := range f.requests {
		if strings.HasPrefix(r, "services list") && !strings.Contains(r, "limit=1") || strings.HasPrefix(r, "services watch") && strings.Contains(r, "sendInitialEvents") {
			whole++
		}
	}
	if whole != 1 {
		t.Errorf("services were read %d times: %q", whole, f.requests)
	}
	f.mu.Unlock()
	if s.Stats().Gaps != 0 {
		t.Error("a gap was counted")
	}
}

// TestGap makes the server forget what happened while we were away: all is read again, what went
// meanwhile goes, what stayed was there all the time.
func TestGap(t *testing.T) {
	f := newFakeAPI(t)
	f.put(clusterIP("stays", "192.0.2.1"))
	f.put(clusterIP("goes", "192.0.2.2"))
	log := &lines{}
	s := start(t, Config{Log: log}, f.client())
	awaitSync(t, s)
	record := s.Service([]byte("ns1"), []byte("stays"))
	f.with(func() {
		f.version++
		delete(f.objects["services"], "ns1/goes")
		f.objects["services"]["ns1/comes"] = clusterIP("comes", "192.0.2.3")
	})
	f.forget()
	f.endWatches()
	eventually.Holds(t, "healing", func() bool { return s.has("comes") && !s.has("goes") })
	if s.Service([]byte("ns1"), []byte("stays")) != record {
		t.Error("the record that did not change is another one")
	}
	if s.Stats().Gaps == 0 {
		t.Error("no gap was counted")
	}
	if len(log.with("changes of services may have been missed")) != 1 {
		t.Errorf("log: %q", log.all)
	}
}

// TestWentBack restores the server from an older copy, with lower versions than we know.
func TestWentBack(t *testing.T) {
	restored(t, func(f *fakeAPI) []fakeEvent {
		return []fakeEvent{{1 << 30, "BOOKMARK", f.bookmark("services", 50, false)}}
	})
}

// TestRestored restores it as kube-apiserver then is: a watch from a version that it has not come to tells nothing, not
// even by bookmarks.
func TestRestored(t *testing.T) {
	restored(t, func(*fakeAPI) []fakeEvent { return nil })
}

// restored has the server lose a service together with its versions, and tell what log says in watches from then on.
func restored(t *testing.T, log func(*fakeAPI) []fakeEvent) {
	t.Helper()
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	f.put(clusterIP("forgotten", "192.0.2.2"))
	s := start(t, Config{}, f.client())
	awaitSync(t, s)
	f.with(func() {
		f.version = 50
		delete(f.objects["services"], "ns1/forgotten")
		f.log["services"] = log(f)
		f.epoch++
	})
	eventually.Holds(t, "healing", func() bool { return !s.has("forgotten") })
	if !s.has("web") {
		t.Error("what is still there went")
	}
	if s.Stats().Gaps == 0 {
		t.Error("no gap was counted")
	}
}

// TestEndsAtOnce meets a server that ends the first watch without a word: then there are lists.
func TestEndsAtOnce(t *testing.T) {
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	f.eofNow = true
	s := start(t, Config{}, f.client())
	awaitSync(t, s)
	if !s.has("web") {
		t.Error("no service")
	}
}

// TestGoneAlways lists and is told each time that what comes after the list is gone: it asks less and less often, and tells why.
func TestGoneAlways(t *testing.T) {
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	f.noStreaming = true
	f.refuse["watch services"] = http.StatusGone
	log := &lines{}
	s := New(Config{Log: log}, f.client())
	begun := time.Now()
	s.Start()
	defer s.Stop()
	awaitSync(t, s)
	eventually.Holds(t, "five lists", func() bool { return f.seen("services list") >= 5 })
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("five lists in %v", took)
	}
	eventually.Holds(t, "a line", func() bool { return len(log.with("refuses to watch services")) == 1 })
}

// TestHeldBack has requests held back for longer than a watch lives at least: one that ended at once was short all the same.
func TestHeldBack(t *testing.T) {
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	c, err := client.New(client.Config{Endpoint: f.URL, QPS: 0.8, Burst: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{}, c)
	r := newReflector(watched{resource: client.Services, writer: &s.services}, c, newLink(s.config.Log), s)
	f.eofNow, f.noStreaming = true, true
	begun := time.Now()
	if err := r.pass(t.Context()); judge(err, false) != ended || r.version == "" {
		t.Fatalf("version %q, %v", r.version, err)
	}
	if took := time.Since(begun); took < quick {
		t.Fatalf("nothing was held back: %v", took)
	}
	if !r.settle(io.EOF, false) {
		t.Error("the next watch begins at once")
	}
}

// TestSilent meets a server that does not know of the end of what there is.
func TestSilent(t *testing.T) {
	defer func(d time.Duration) { silence = d }(silence)
	silence = 100 * time.Millisecond
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	f.deaf = true
	s := New(Config{}, f.client())
	s.Start()
	defer s.Stop()
	awaitSync(t, s)
	f.put(clusterIP("web", "192.0.2.2"))
	eventually.Holds(t, "a change", func() bool { return s.at("web") == "192.0.2.2" })
}

// TestMute meets a server that says nothing at all to a watch with all there is.
func TestMute(t *testing.T) {
	defer func(d time.Duration) { silence = d }(silence)
	silence = 100 * time.Millisecond
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	f.mute = true
	log := &lines{}
	s := New(Config{Log: log}, f.client())
	s.Start()
	defer s.Stop()
	awaitSync(t, s)
	if !s.has("web") || len(log.all) != 0 {
		t.Errorf("service %v, log: %q", s.has("web"), log.all)
	}
}

// TestListsWithoutEnd meets servers whose lists stop in the middle, or begin anew all the time: it is told of, and all is
// read as soon as they come to an end.
func TestListsWithoutEnd(t *testing.T) {
	defer func(d time.Duration) { listSilence = d }(listSilence)
	listSilence = 500 * time.Millisecond
	for _, c := range []struct {
		fault func(f *fakeAPI) *bool
		line  string
	}{
		{func(f *fakeAPI) *bool { return &f.stuck }, "the list does not come to its end"},
		{func(f *fakeAPI) *bool { return &f.sameToken }, "a page of the list says that it follows itself"},
	} {
		t.Run(c.line, func(t *testing.T) {
			f := newFakeAPI(t)
			f.put(clusterIP("web", "192.0.2.1"))
			f.noStreaming = true
			*c.fault(f) = true
			log := &lines{}
			s := New(Config{Log: log}, f.client())
			s.Start()
			defer s.Stop()
			eventually.Holds(t, "a line", func() bool { return len(log.with(c.line)) > 0 })
			f.with(func() { *c.fault(f) = false })
			listed := f.seen("services list")
			eventually.Holds(t, "another list", func() bool { return f.seen("services list") > listed })
			eventually.Holds(t, "all", func() bool { return s.HasSynced() && s.has("web") })
		})
	}
}

// TestFails reads lists where a watch with all there is fails, and follows changes with a plain one.
func TestFails(t *testing.T) {
	f := newFakeAPI(t)
	f.failing = true
	f.put(clusterIP("web", "192.0.2.1"))
	s := start(t, everythingLocal(), f.client())
	awaitSync(t, s)
	f.put(clusterIP("new", "192.0.2.2"))
	eventually.Holds(t, "the change", func() bool { return s.has("web") && s.has("new") })
}

// TestOnlyLists lives by lists where watches are none, says so once, and does not ask for them all the time.
func TestOnlyLists(t *testing.T) {
	f := newFakeAPI(t)
	f.onlyLists = true
	f.put(clusterIP("web", "192.0.2.1"))
	l := new(lines)
	config := everythingLocal()
	config.Log = l
	s := start(t, config, f.client())
	awaitSync(t, s)
	const line = "ERROR the Kubernetes API refuses to watch services: no event: watch event of unknown type"
	eventually.Holds(t, "the line", func() bool { return len(l.with(line)) == 1 })
	if n := f.seen("services list"); !s.has("web") || n != 1 {
		t.Errorf("%d lists", n)
	}
}

// TestReadsAgain finds what changed when a watch tells something else than events.
func TestReadsAgain(t *testing.T) {
	f := newFakeAPI(t)
	r := newReflector(watched{resource: client.Services}, f.client(), newLink(new(lines)), nil)
	r.version = "7"
	r.lived = time.Hour
	if wait := r.settle(fmt.Errorf("around: %w", client.ErrNoEvent), true); !wait || r.version != "" || r.backoff.next(0) != maxWait {
		t.Errorf("version %q, wait %v", r.version, wait)
	}
}

// TestGoneMeanwhile has an object deleted between what a watch told and the list that is asked for in its place.
func TestGoneMeanwhile(t *testing.T) {
	defer func(d time.Duration) { silence = d }(silence)
	silence = 100 * time.Millisecond
	f := newFakeAPI(t)
	gone := clusterIP("gone", "192.0.2.1")
	f.put(gone)
	f.put(clusterIP("web", "192.0.2.2"))
	f.deaf = true
	f.beforeList = func(resource string) {
		if resource == "services" {
			f.remove(gone)
		}
	}
	s := New(Config{}, f.client())
	s.Start()
	defer s.Stop()
	awaitSync(t, s)
	if s.has("gone") || !s.has("web") {
		t.Errorf("what is gone is there: %t; what is there: %t", s.has("gone"), s.has("web"))
	}
}

// TestLatency measures changes that were watched, and neither the first ones nor those that a gap brought.
func TestLatency(t *testing.T) {
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	f.put(&api.Service{ObjectMeta: named("ns1", "headless"), Spec: api.ServiceSpec{ClusterIP: "None"}})
	put := func(name, service, ip string) {
		sl := newSlice("ns1", name, service, endpoint(ip))
		sl.Annotations = map[string]string{"endpoints.kubernetes.io/last-change-trigger-time": time.Now().Add(-time.Hour).Format(time.RFC3339Nano)}
		f.put(sl)
	}
	put("web-a", "web", "192.0.2.10")
	told := make(chan string, 10)
	s := start(t, Config{Endpoints: true, Latency: func(headless bool, d time.Duration) {
		told <- fmt.Sprintf("headless=%v %v", headless, d.Round(time.Minute))
	}}, f.client())
	awaitSync(t, s)
	put("web-a", "web", "192.0.2.11")
	if got := <-told; got != "headless=false 1h0m0s" {
		t.Error(got)
	}
	put("none-a", "nobody", "192.0.2.12") // no such service
	put("hl-a", "headless", "192.0.2.13")
	if got := <-told; got != "headless=true 1h0m0s" {
		t.Error(got)
	}
	select {
	case got := <-told:
		t.Errorf("told more: %s", got)
	default:
	}
}

// TestStop ends everything; what is known stays.
func TestStop(t *testing.T) {
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	s := New(Config{Endpoints: true}, f.client())
	s.Start()
	awaitSync(t, s)
	s.Stop()
	s.Stop()
	if !s.has("web") {
		t.Error("data went with Stop")
	}
	n := f.seen("watch")
	time.Sleep(300 * time.Millisecond)
	if f.seen("watch") != n {
		t.Error("requests after Stop")
	}
	unstarted := New(Config{}, f.client())
	unstarted.Stop()
}

package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client"

	"google.golang.org/protobuf/encoding/protowire"
	api "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// object is an object that the fake API holds.
type object interface {
	metav1.Object
	Marshal() ([]byte, error)
}

// fakeAPI is an API server over plain HTTP, whose misbehaviour can be chosen.
type fakeAPI struct {
	*httptest.Server
	tb testing.TB

	mu       sync.Mutex
	cond     *sync.Cond
	version  int
	objects  map[string]map[string]object // by resource and key
	log      map[string][]fakeEvent       // by resource
	oldest   int                          // events up to this version are forgotten
	requests []string                     // "resource query" of every request
	epoch    int                          // raised to end all watches

	protobuf    bool           // answer in protobuf
	noStreaming bool           // refuse sendInitialEvents with 422
	failing     bool           // fail in sendInitialEvents with 500
	onlyLists   bool           // answer watches as lists
	deaf        bool           // answer watches with initial events by silence
	mute        bool           // the same, without a header
	stuck       bool           // stop in the middle of lists
	sameToken   bool           // end each page of a list with one token
	refuse      map[string]int // by "verb resource": status code
	retryAfter  string         // what it says to who is refused, in words for people
	eofNow      bool           // end watches at once
	gateway     bool           // let something else answer in its place
	pages       int            // objects in a page of a list
	lost        int            // up to which watch the octets of all vanish
	watches     int            // that have begun

	beforeList func(resource string) // may be nil
}

type fakeEvent struct {
	version int
	typ     string
	obj     object
}

func newFakeAPI(tb testing.TB) *fakeAPI {
	f := &fakeAPI{tb: tb, version: 100, objects: map[string]map[string]object{}, log: map[string][]fakeEvent{}, refuse: map[string]int{}}
	f.cond = sync.NewCond(&f.mu)
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	tb.Cleanup(func() { f.endWatches(); f.Server.CloseClientConnections(); f.Server.Close() })
	return f
}

func (f *fakeAPI) client() *client.Client {
	c, err := client.New(client.Config{Endpoint: f.URL, UserAgent: "test", QPS: 1000, Burst: 1000})
	if err != nil {
		f.tb.Fatal(err)
	}
	return c
}

func resourceOf(o object) string {
	switch o.(type) {
	case *api.Service, garbled:
		return "services"
	case *api.Pod:
		return "pods"
	case *api.Namespace:
		return "namespaces"
	}
	return "endpointslices"
}

// with changes how the API behaves.
func (f *fakeAPI) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	f.cond.Broadcast()
}

func (f *fakeAPI) put(o object) {
	f.with(func() {
		f.version++
		r, key := resourceOf(o), o.GetNamespace()+"/"+o.GetName()
		if f.objects[r] == nil {
			f.objects[r] = map[string]object{}
		}
		typ := "ADDED"
		if f.objects[r][key] != nil {
			typ = "MODIFIED"
		}
		o.SetResourceVersion(strconv.Itoa(f.version))
		f.objects[r][key] = o
		f.log[r] = append(f.log[r], fakeEvent{f.version, typ, o})
	})
}

func (f *fakeAPI) remove(o object) {
	f.with(func() {
		f.version++
		r := resourceOf(o)
		delete(f.objects[r], o.GetNamespace()+"/"+o.GetName())
		o.SetResourceVersion(strconv.Itoa(f.version))
		f.log[r] = append(f.log[r], fakeEvent{f.version, "DELETED", o})
	})
}

// endWatches ends all watches that run.
func (f *fakeAPI) endWatches() { f.with(func() { f.epoch++ }) }

// forget makes the API forget all events so far, so that no watch can begin before now.
func (f *fakeAPI) forget() {
	f.with(func() {
		f.version++
		f.oldest = f.version
		f.log = map[string][]fakeEvent{}
	})
}

func (f *fakeAPI) seen(part string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if strings.Contains(r, part) {
			n++
		}
	}
	return n
}

func (f *fakeAPI) serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	resource, q := parts[len(parts)-1], r.URL.Query()
	verb := "list"
	if q.Get("watch") == "true" {
		verb = "watch"
	}
	f.mu.Lock()
	f.requests = append(f.requests, resource+" "+verb+" "+r.URL.RawQuery)
	code := f.refuse[verb+" "+resource]
	if verb == "watch" && q.Get("sendInitialEvents") == "true" && f.noStreaming {
		code = http.StatusUnprocessableEntity
	}
	if verb == "watch" && q.Get("sendInitialEvents") == "true" && f.failing {
		code = http.StatusInternalServerError
	}
	onlyLists, gateway := f.onlyLists, f.gateway
	if v, err := strconv.Atoi(q.Get("resourceVersion")); err == nil && verb == "watch" && v < f.oldest {
		code = http.StatusGone
	}
	f.mu.Unlock()
	switch {
	case gateway:
		w.Write([]byte(`{"error":"log in first"}`))
	case code != 0:
		f.status(w, code, verb, resource)
	case verb == "watch" && !onlyLists:
		f.watch(w, r, resource)
	default:
		f.list(w, r, resource)
	}
}

func (f *fakeAPI) status(w http.ResponseWriter, code int, verb, resource string) {
	if f.retryAfter != "" { // as priority and fairness does
		w.Header().Set("Retry-After", f.retryAfter)
		http.Error(w, "Too many requests, please try again later.", code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	reason := map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 410: metav1.StatusReasonExpired, 500: metav1.StatusReasonInternalError, 422: metav1.StatusReasonInvalid}[code]
	json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason,
		Message: fmt.Sprintf("%s of %s: code %d", verb, resource, code),
	})
}

func (f *fakeAPI) sorted(resource string) []object {
	var keys []string
	for k := range f.objects[resource] {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var all []object
	for _, k := range keys {
		all = append(all, f.objects[resource][k])
	}
	return all
}

func (f *fakeAPI) list(w http.ResponseWriter, r *http.Request, resource string) {
	if f.beforeList != nil {
		f.beforeList(resource)
	}
	f.mu.Lock()
	all, version, pages, stuck, sameToken := f.sorted(resource), f.version, f.pages, f.stuck, f.sameToken
	f.mu.Unlock()
	if stuck {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"items":[`))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	next := ""
	if pages > 0 && first+pages < len(all) {
		next = strconv.Itoa(first + pages)
		all = all[first : first+pages]
	} else {
		all = all[first:]
	}
	if sameToken {
		next = "0"
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(version), Continue: next}
	if !f.protobuf {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"kind": "List", "apiVersion": "v1", "items": all, "metadata": meta})
		return
	}
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	m, _ := meta.Marshal()
	list := field(nil, 1, m)
	for _, o := range all {
		raw, _ := o.Marshal()
		list = field(list, 2, raw)
	}
	w.Write(envelope("List", list))
}

func field(b []byte, num protowire.Number, val []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), val)
}

func envelope(kind string, raw []byte) []byte {
	b := field([]byte("k8s\x00"), 1, field(nil, 2, []byte(kind)))
	return field(b, 2, raw)
}

func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request, resource string) {
	q := r.URL.Query()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watches++
	epoch, mine := f.epoch, f.watches
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-r.Context().Done():
			f.with(func() {})
		case <-stop:
		}
	}()
	flush := func() { w.(http.Flusher).Flush() }
	w.Header().Set("Content-Type", "application/json")
	for f.mute && q.Get("sendInitialEvents") == "true" && r.Context().Err() == nil {
		f.cond.Wait()
	}
	flush()
	if f.eofNow {
		return
	}
	from, _ := strconv.Atoi(q.Get("resourceVersion"))
	if q.Get("sendInitialEvents") == "true" {
		from = f.version
		for _, o := range f.sorted(resource) {
			f.send(w, "ADDED", o)
		}
		if !f.deaf {
			f.send(w, "BOOKMARK", f.bookmark(resource, from, true))
		}
		flush()
	}
	for r.Context().Err() == nil && f.epoch == epoch {
		if mine <= f.lost {
			f.cond.Wait()
			continue
		}
		for _, e := range f.log[resource] {
			if e.version > from {
				from = e.version
				if e.version > f.version { // a bookmark that is told whatever was told before
					from = f.version
				}
				f.send(w, e.typ, e.obj)
			}
		}
		flush()
		f.cond.Wait()
	}
}

func (f *fakeAPI) bookmark(resource string, version int, end bool) object {
	m := metav1.ObjectMeta{ResourceVersion: strconv.Itoa(version)}
	if end {
		m.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	switch resource {
	case "services":
		return &api.Service{ObjectMeta: m}
	case "pods":
		return &api.Pod{ObjectMeta: m}
	case "namespaces":
		return &api.Namespace{ObjectMeta: m}
	}
	return &discovery.EndpointSlice{ObjectMeta: m}
}

func (f *fakeAPI) send(w http.ResponseWriter, typ string, o object) {
	if !f.protobuf {
		json.NewEncoder(w).Encode(map[string]any{"type": typ, "object": o})
		return
	}
	raw, _ := o.Marshal()
	event := field(field(nil, 1, []byte(typ)), 2, field(nil, 1, envelope("X", raw)))
	w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(event))))
	w.Write(event)
}

// lines is a Logger that remembers.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(level, format string, v []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, level+" "+fmt.Sprintf(format, v...))
}
func (l *lines) Infof(format string, v ...any)    { l.add("INFO", format, v) }
func (l *lines) Warningf(format string, v ...any) { l.add("WARNING", format, v) }
func (l *lines) Errorf(format string, v ...any)   { l.add("ERROR", format, v) }

func (l *lines) with(part string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

func start(t testing.TB, config Config, c *client.Client) *Store {
	t.Helper()
	s := New(config, c)
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

func awaitSync(t testing.TB, s *Store) {
	t.Helper()
	select {
	case <-s.Synced():
	case <-time.After(20 * time.Second):
		t.Fatal("no sync within 20 s")
	}
	if !s.HasSynced() {
		t.Error("Synced is closed and HasSynced false")
	}
}

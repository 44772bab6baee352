package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"

	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testClient(t testing.TB, c Config, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	c.Endpoint = srv.URL
	cl, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// names lists the names of the services in what is read.
func names(out *[]string) Each {
	return func(object []byte, e lean.Encoding) error {
		var s lean.Service
		if err := s.Decode(object, e); err != nil {
			return err
		}
		*out = append(*out, string(s.Meta.Name))
		return nil
	}
}

const jsonList = `{"kind":"ServiceList","unknown":{"a":[1,{}]},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}],"metadata":{"resourceVersion":"7","continue":"more"}}`

func TestRequest(t *testing.T) {
	var got *http.Request
	c := testClient(t, Config{UserAgent: UserAgent("1.2.3", "abc")}, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, jsonList)
	})
	var all []string
	o := Options{Labels: "a=b", Fields: "c!=d", Version: "5", Limit: 500, Continue: "next"}
	meta, err := c.List(context.Background(), EndpointSlices, o, names(&all))
	if err != nil || meta.ResourceVersion != "7" || meta.Continue != "more" || strings.Join(all, " ") != "a b" {
		t.Fatalf("%v %+v %v", all, meta, err)
	}
	if got.URL.Path != "/apis/discovery.k8s.io/v1/endpointslices" {
		t.Errorf("path %s", got.URL.Path)
	}
	if q := got.URL.RawQuery; q != "continue=next&fieldSelector=c%21%3Dd&labelSelector=a%3Db&limit=500&resourceVersion=5" {
		t.Errorf("query %s", q)
	}
	if a := got.Header.Get("Accept"); a != "application/vnd.kubernetes.protobuf, */*" {
		t.Errorf("accept %q", a)
	}
	if a := got.Header.Get("User-Agent"); !strings.HasPrefix(a, "CoreDNS/1.2.3 git_commit:abc (") {
		t.Errorf("user agent %q", a)
	}
	if c.Host() != strings.TrimPrefix(got.Host, "http://") {
		t.Errorf("host %s, want %s", c.Host(), got.Host)
	}
}

func TestRefusal(t *testing.T) {
	c := testClient(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"you may not","reason":"Forbidden","code":403}`)
	})
	_, err := c.List(context.Background(), Services, Options{}, nil)
	if !apierrors.IsForbidden(err) || err.Error() != "you may not" {
		t.Errorf("list: %v", err)
	}
	if _, err := c.Watch(context.Background(), Services, Options{}); !apierrors.IsForbidden(err) {
		t.Errorf("watch: %v", err)
	}
}

func TestWatchJSON(t *testing.T) {
	c := testClient(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.RawQuery; q != "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=301&watch=true" {
			t.Errorf("query %s", q)
		}
		io.WriteString(w, `{"type":"ADDED","object":{"metadata":{"name":"a"}}}
{"type":"MODIFIED","object":{"metadata":{"name":"a"}}}
{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}
{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","message":"too old","code":410}}`)
	})
	w, err := c.Watch(context.Background(), Services, Options{Initial: true, Timeout: 301 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, want := range []EventType{Added, Modified, Bookmark} {
		e, err := w.Next()
		if err != nil || e.Type != want || e.Encoding != lean.JSON {
			t.Fatalf("%+v, %v, want type %d", e, err, want)
		}
	}
	if _, err := w.Next(); !apierrors.IsResourceExpired(err) {
		t.Errorf("at the end: %v", err)
	}
}

// TestQPS sees that apiserver_qps holds requests back, watches among them.
func TestQPS(t *testing.T) {
	c := testClient(t, Config{QPS: 10, Burst: 1}, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "{}") })
	begin := time.Now()
	for range 4 {
		w, err := c.Watch(context.Background(), Services, Options{})
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
	if d := time.Since(begin); d < 250*time.Millisecond {
		t.Errorf("four watches at 10 a second were begun within %v", d)
	}
}

// TestMaxInflight sees that requests wait for each other, and that a watch that has begun keeps nobody waiting.
func TestMaxInflight(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	c := testClient(t, Config{QPS: 1000, Burst: 1000, MaxInflight: 2}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
		io.WriteString(w, jsonList)
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range 3 { // more than may be in flight
		w, err := c.Watch(ctx, Services, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var all []string
			if _, err := c.List(ctx, Services, Options{}, names(&all)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most != 2 {
		t.Errorf("%d requests at a time, want 2", most)
	}
}

func TestMetrics(t *testing.T) {
	c := testClient(t, Config{}, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, jsonList) })
	host := c.Host()
	ok := func() float64 { return testutil.ToFloat64(requestResults.WithLabelValues("200", "GET", host)) }
	failed := func() float64 {
		return testutil.ToFloat64(requestResults.WithLabelValues("<error>", "GET", "127.0.0.1:1"))
	}
	okBefore, failedBefore := ok(), failed()
	var all []string
	if _, err := c.List(context.Background(), Services, Options{}, names(&all)); err != nil {
		t.Fatal(err)
	}
	if ok() != okBefore+1 {
		t.Errorf("%v requests counted, before %v", ok(), okBefore)
	}
	gone, err := New(Config{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gone.List(context.Background(), Services, Options{}, nil); err == nil {
		t.Fatal("an answer from nobody")
	}
	if failed() != failedBefore+1 {
		t.Errorf("%v failures counted, before %v", failed(), failedBefore)
	}
	if label("a\xffb") != "a\uFFFDb" {
		t.Error("a label that is no UTF-8")
	}
	for _, c := range []any{requestResults, requestDuration, rateLimiterDuration} {
		if problems, err := testutil.GatherAndLint(registryOf(t, c)); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
	const nowhere = "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
	if _, err := New(Config{}); err == nil || err.Error() != nowhere {
		t.Errorf("outside of a cluster: %v", err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := New(Config{Kubeconfig: Kubeconfig(missing, "")}); err == nil || err.Error() != "stat "+missing+": no such file or directory" {
		t.Errorf("missing file: %v", err)
	}
	file := filepath.Join(t.TempDir(), "config")
	text := `apiVersion: v1
kind: Config
current-context: one
clusters: [{name: c1, cluster: {server: "http://192.0.2.1:6443"}}, {name: c2, cluster: {server: "http://192.0.2.2:6443"}}]
contexts: [{name: one, context: {cluster: c1}}, {name: two, context: {cluster: c2}}]
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for context, want := range map[string]string{"": "192.0.2.1:6443", "two": "192.0.2.2:6443"} {
		c, err := New(Config{Kubeconfig: Kubeconfig(file, context), Endpoint: "http://192.0.2.9"})
		if err != nil || c.Host() != want {
			t.Errorf("context %q: %v, %v, want %s", context, c.Host(), err, want)
		}
	}
	if _, err := New(Config{Endpoint: "https://192.0.2.1", CAFile: missing}); err == nil {
		t.Error("a missing CA file was accepted")
	}
	cfg, err := Config{Kubeconfig: Kubeconfig(file, ""), UserAgent: "ua", QPS: 3, Burst: 4}.rest()
	if err != nil || cfg.UserAgent != "ua" || cfg.ContentType != contentType || cfg.QPS != 3 || cfg.Burst != 4 || !cfg.DisableCompression {
		t.Errorf("%+v, %v", cfg, err)
	}
}

func TestEachStops(t *testing.T) {
	stop := errors.New("enough")
	n := 0
	_, err := readList(strings.NewReader(jsonList), func([]byte, lean.Encoding) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
}

func TestNoList(t *testing.T) {
	for _, body := range []string{"", "\n", "hello", "k8s", "k8s\x00", "k8s\x00\x12\x7f", "k8s\x00\x12\x02\x12\x7f", `{"items":`, `{"items":3}`, `{"items":[`} {
		if _, err := readList(strings.NewReader(body), func([]byte, lean.Encoding) error { return nil }); err == nil {
			t.Errorf("%q was accepted", body)
		}
	}
	if meta, err := readList(strings.NewReader("\r\n\t "+`{"items":null,"metadata":{"resourceVersion":"1"}}`), nil); err != nil || meta.ResourceVersion != "1" {
		t.Errorf("an empty list: %+v, %v", meta, err)
	}
}

func ExampleResource_Path() {
	fmt.Println(Services.Path(), Services)
	fmt.Println(EndpointSlices.Path(), EndpointSlices)
	// Output:
	// /api/v1/services services
	// /apis/discovery.k8s.io/v1/endpointslices endpointslices.discovery.k8s.io
}

// TestNoListAtAll: what is no list is not taken for one of nothing, and what is cut off not for a list that came to its end.
func TestNoListAtAll(t *testing.T) {
	st := apierrors.NewUnauthorized("who are you").Status()
	st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	cut := jsonList[:strings.Index(jsonList, ",{\"metadata\":{\"name\":\"b\"")]
	for body, want := range map[string]error{
		`{}`: errNoList,
		`{"kind":"Status","status":"Failure","code":401}`: errNoList,
		`{"kind":"Status","items":[]}`:                    errNoList,
		`{"error":"login_required"}`:                      errNoList,
		`{"metadata":{"resourceVersion":"7"}}`:            errNoList,
		string(encode(t, &st)):                            errNoList,
		cut:                                               io.ErrUnexpectedEOF,
		cut + "]":                                         io.ErrUnexpectedEOF,
		`{"items":[]}`:                                    nil,
		`{"kind":"List","items":null}`:                    nil,
		"k8s\x00\x12\x00":                                 nil, // an envelope without a kind
		string(encode(t, serviceList(0))):                 nil,
	} {
		if _, err := readList(strings.NewReader(body), func([]byte, lean.Encoding) error { return nil }); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%q: %v, want %v", body, err, want)
		}
	}
}

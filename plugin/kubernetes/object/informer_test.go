package object

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	api "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	cachetest "k8s.io/client-go/tools/cache/testing"
)

// notes is an event handler that writes down what it is told.
type notes struct {
	mu  sync.Mutex
	all []string
}

func (n *notes) add(format string, v ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, fmt.Sprintf(format, v...))
}

func (n *notes) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := strings.Join(n.all, "; ")
	n.all = nil
	return s
}

func show(obj any) string {
	switch o := obj.(type) {
	case *Pod:
		return o.Name + "@" + o.PodIP
	case cache.DeletedFinalStateUnknown:
		return "unknown " + o.Key
	}
	return fmt.Sprintf("%T", obj)
}

func (n *notes) OnAdd(obj any, initial bool) { n.add("add %s initial=%v", show(obj), initial) }
func (n *notes) OnUpdate(old, obj any)       { n.add("update %s to %s", show(old), show(obj)) }
func (n *notes) OnDelete(obj any)            { n.add("delete %s", show(obj)) }

func somePod(name, ip string) *api.Pod {
	return &api.Pod{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "ns1"}, Status: api.PodStatus{PodIP: ip}}
}

func terminating(p *api.Pod) *api.Pod {
	p.DeletionTimestamp = &meta.Time{Time: time.Unix(1, 0)}
	return p
}

func TestDefaultProcessor(t *testing.T) {
	n := &notes{}
	indexer := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{})
	process := DefaultProcessor(ToPod, nil)(indexer, n)
	for _, tc := range []struct {
		what    string
		deltas  any
		want    string
		wantErr string
	}{
		{"added", cache.Deltas{{Type: cache.Added, Object: somePod("a", "192.0.2.1")}}, "add a@192.0.2.1 initial=true", ""},
		{"changed", cache.Deltas{{Type: cache.Updated, Object: somePod("a", "192.0.2.2")}}, "update a@192.0.2.1 to a@192.0.2.2", ""},
		{"one that terminates is skipped, and what follows is not", cache.Deltas{
			{Type: cache.Updated, Object: terminating(somePod("a", "192.0.2.3"))},
			{Type: cache.Added, Object: somePod("b", "192.0.2.4")},
		}, "add b@192.0.2.4 initial=true", ""},
		{"one that terminates is deleted", cache.Deltas{{Type: cache.Deleted, Object: terminating(somePod("a", "192.0.2.3"))}}, "delete a@192.0.2.3", ""},
		{"a deletion that was missed", cache.Deltas{{Type: cache.Deleted, Object: cache.DeletedFinalStateUnknown{Key: "ns1/b", Obj: &Pod{Name: "b", Namespace: "ns1"}}}}, "delete unknown ns1/b", ""},
		{"another type stops the rest", cache.Deltas{
			{Type: cache.Added, Object: &api.Node{}},
			{Type: cache.Added, Object: somePod("c", "192.0.2.5")},
		}, "", "unexpected object"},
		{"no object", cache.Deltas{{Type: cache.Added, Object: "text"}}, "", "unexpected object"},
		{"no deltas", "text", "", "want deltas"},
		{"replaced and synced", cache.Deltas{{Type: cache.Replaced, Object: somePod("d", "192.0.2.6")}, {Type: cache.Sync, Object: somePod("d", "192.0.2.7")}},
			"add d@192.0.2.6 initial=true; update d@192.0.2.6 to d@192.0.2.7", ""},
	} {
		err := process(tc.deltas, true)
		if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
			t.Errorf("%s: error %v, want %q", tc.what, err, tc.wantErr)
		}
		if got := n.take(); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.what, got, tc.want)
		}
	}
	if keys := indexer.ListKeys(); len(keys) != 1 || keys[0] != "ns1/d" {
		t.Errorf("left are %v", keys)
	}
}

// TestNewIndexerInformer follows a source of pods through client-go.
func TestNewIndexerInformer(t *testing.T) {
	source := cachetest.NewFakeControllerSource()
	source.Add(somePod("a", "192.0.2.1"))
	n := &notes{}
	indexers := cache.Indexers{"ip": func(obj any) ([]string, error) { return []string{obj.(*Pod).PodIP}, nil }}
	indexer, controller := NewIndexerInformer(source, &api.Pod{}, n, indexers, DefaultProcessor(ToPod, nil))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { controller.RunWithContext(ctx) })
	defer func() { cancel(); wg.Wait() }()
	if !cache.WaitForCacheSync(ctx.Done(), controller.HasSynced) {
		t.Fatal("no sync")
	}
	if got, err := indexer.ByIndex("ip", "192.0.2.1"); err != nil || len(got) != 1 || got[0].(*Pod).Name != "a" {
		t.Errorf("%v, %v", got, err)
	}
	source.Modify(somePod("a", "192.0.2.2"))
	source.Delete(somePod("a", "192.0.2.2"))
	for end := time.Now().Add(10 * time.Second); len(indexer.ListKeys()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not deleted within 10 s")
		}
	}
	if got := n.take(); !strings.Contains(got, "add a@192.0.2.1 initial=true") || !strings.Contains(got, "delete a@192.0.2.2") {
		t.Errorf("told: %s", got)
	}
}

func observed(t *testing.T, kind string) (count uint64, sum float64) {
	t.Helper()
	var m dto.Metric
	if err := DNSProgrammingLatency.WithLabelValues(kind).(prometheus.Metric).Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.Histogram.GetSampleCount(), m.Histogram.GetSampleSum()
}

func TestLatency(t *testing.T) {
	defer func(f func(time.Time) time.Duration) { DurationSinceFunc = f }(DurationSinceFunc)
	now := time.Unix(1000, 0)
	DurationSinceFunc = now.Sub
	web, headless := &Service{ClusterIPs: []string{"192.0.2.1"}}, &Service{ClusterIPs: []string{"None"}}
	slice := func(service string, at string) *discovery.EndpointSlice {
		s := &discovery.EndpointSlice{ObjectMeta: meta.ObjectMeta{Name: service, Namespace: "ns1", Labels: map[string]string{discovery.LabelServiceName: service}}}
		if at != "" {
			s.Annotations = map[string]string{api.EndpointsLastChangeTriggerTime: at}
		}
		return s
	}
	recorder := &EndpointLatencyRecorder{ServiceFunc: func(o meta.Object) []*Service {
		switch o.GetLabels()[discovery.LabelServiceName] {
		case "web":
			return []*Service{web}
		case "headless":
			return []*Service{headless}
		case "two":
			return []*Service{web, web}
		}
		return nil
	}}
	indexer := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{})
	process := DefaultProcessor(EndpointSliceToEndpoints, recorder)(indexer, cache.ResourceEventHandlerFuncs{})
	before := now.Add(-2 * time.Second).UTC().Format(time.RFC3339Nano)
	for _, tc := range []struct {
		what     string
		d        cache.Delta
		initial  bool
		ip, hdls uint64
	}{
		{"initial list", cache.Delta{Type: cache.Added, Object: slice("web", before)}, true, 0, 0},
		{"listed again", cache.Delta{Type: cache.Replaced, Object: slice("web", before)}, false, 0, 0},
		{"changed", cache.Delta{Type: cache.Updated, Object: slice("web", before)}, false, 1, 0},
		{"headless", cache.Delta{Type: cache.Added, Object: slice("headless", before)}, false, 0, 1},
		{"no time", cache.Delta{Type: cache.Updated, Object: slice("web", "")}, false, 0, 0},
		{"bad time", cache.Delta{Type: cache.Updated, Object: slice("web", "yesterday")}, false, 0, 0},
		{"no service", cache.Delta{Type: cache.Added, Object: slice("nobody", before)}, false, 0, 0},
		{"two services", cache.Delta{Type: cache.Added, Object: slice("two", before)}, false, 0, 0},
		{"deleted", cache.Delta{Type: cache.Deleted, Object: slice("web", before)}, false, 1, 0},
	} {
		ip, ipSum := observed(t, KindClusterIP)
		hdls, _ := observed(t, KindHeadlessWithSelector)
		if err := process(cache.Deltas{tc.d}, tc.initial); err != nil {
			t.Fatal(err)
		}
		ip2, ipSum2 := observed(t, KindClusterIP)
		hdls2, _ := observed(t, KindHeadlessWithSelector)
		if ip2-ip != tc.ip || hdls2-hdls != tc.hdls {
			t.Errorf("%s: %d and %d observations, want %d and %d", tc.what, ip2-ip, hdls2-hdls, tc.ip, tc.hdls)
		}
		if tc.ip == 1 && ipSum2-ipSum != 2 {
			t.Errorf("%s: %v s, want 2", tc.what, ipSum2-ipSum)
		}
	}
}

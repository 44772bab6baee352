//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/coredns/coredns/plugin/kubernetes/client"
	"github.com/coredns/coredns/plugin/kubernetes/client/lean"
	"github.com/coredns/coredns/plugin/kubernetes/object"
	"github.com/coredns/coredns/plugin/kubernetes/store"

	api "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// kinds are what is read, with the typed object of each.
func kinds(pods bool) []kind {
	all := []kind{
		{client.Services, func() typed { return new(api.Service) }, func() lean.Object { return new(lean.Service) }, object.ToService},
		{client.EndpointSlices, func() typed { return new(discovery.EndpointSlice) }, func() lean.Object { return new(lean.EndpointSlice) }, object.EndpointSliceToEndpoints},
		{client.Namespaces, func() typed { return new(api.Namespace) }, func() lean.Object { return new(lean.Namespace) }, object.ToNamespace},
	}
	if pods {
		all = append(all, kind{client.Pods, func() typed { return new(api.Pod) }, func() lean.Object { return new(lean.Pod) }, object.ToPod})
	}
	return all
}

type typed interface {
	runtime.Object
	metav1.Object
	Unmarshal([]byte) error
}

type kind struct {
	resource client.Resource
	typed    func() typed
	lean     func() lean.Object
	trim     object.ToFunc
}

// watcher makes a watch of ours one that client-go's reflectors read.
type watcher struct {
	events chan watch.Event
	cancel context.CancelFunc
}

func (w *watcher) Stop()                          { w.cancel() }
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

func listWatch(c *client.Client, k kind, object func(client.Event) runtime.Object) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return nil, fmt.Errorf("no lists in this comparison")
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			ctx, cancel := context.WithCancel(ctx)
			w, err := c.Watch(ctx, k.resource, client.Options{Version: o.ResourceVersion, Initial: o.SendInitialEvents != nil})
			if err != nil {
				cancel()
				return nil, err
			}
			out := &watcher{make(chan watch.Event), cancel}
			go func() {
				defer w.Close()
				defer close(out.events)
				for {
					e, err := w.Next()
					if err != nil {
						return
					}
					t := []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark}[e.Type]
					select {
					case out.events <- watch.Event{Type: t, Object: object(e)}:
					case <-ctx.Done():
						return
					}
				}
			}()
			return out, nil
		},
	}
}

// viaInformers keeps the trimmed objects of package object in client-go's informers.
func viaInformers(config client.Config, pods bool) func() string {
	c, err := client.New(config)
	if err != nil {
		fatal(err)
	}
	var stores []cache.Indexer
	var synced []cache.InformerSynced
	for _, k := range kinds(pods) {
		lw := listWatch(c, k, func(e client.Event) runtime.Object {
			o := k.typed()
			if err := o.Unmarshal(e.Object); err != nil {
				fatal(err)
			}
			return o
		})
		indexers := cache.Indexers{"key": func(obj any) ([]string, error) {
			switch o := obj.(type) {
			case *object.Service:
				return []string{o.Index}, nil
			case *object.Endpoints:
				return []string{o.Index}, nil
			case *object.Pod:
				return []string{o.PodIP}, nil
			}
			return nil, nil
		}, "ip": func(obj any) ([]string, error) {
			switch o := obj.(type) {
			case *object.Service:
				return o.ClusterIPs, nil
			case *object.Endpoints:
				return o.IndexIP, nil
			}
			return nil, nil
		}}
		s, ctl := object.NewIndexerInformer(lw, k.typed(), cache.ResourceEventHandlerFuncs{}, indexers, object.DefaultProcessor(k.trim, nil))
		stores, synced = append(stores, s), append(synced, ctl.HasSynced)
		go ctl.RunWithContext(context.Background())
	}
	cache.WaitForCacheSync(nil, synced...)
	return func() string { return fmt.Sprintf("%d services", len(stores[0].ListKeys())) }
}

// leanObject is what a reflector asks of objects, around a lean one.
type leanObject struct {
	object.Empty
	lean.Object
	ns, name, version string
	annotations       map[string]string
}

func (o *leanObject) GetNamespace() string              { return o.ns }
func (o *leanObject) GetName() string                   { return o.name }
func (o *leanObject) GetResourceVersion() string        { return o.version }
func (o *leanObject) GetAnnotations() map[string]string { return o.annotations }
func (o *leanObject) DeepCopyObject() runtime.Object    { return o }

// intoStore is what a reflector fills; it hands on to our store.
type intoStore struct {
	s    *store.Store
	done *sync.WaitGroup
}

func (i intoStore) Add(obj any) error    { i.s.Put(obj.(*leanObject).Object); return nil }
func (i intoStore) Update(obj any) error { return i.Add(obj) }
func (i intoStore) Delete(obj any) error { i.s.Delete(obj.(*leanObject).Object); return nil }
func (i intoStore) Resync() error        { return nil }
func (i intoStore) Replace(all []any, _ string) error {
	for _, obj := range all {
		i.Add(obj)
	}
	i.done.Done()
	return nil
}

// viaLeanReflectors reads with client-go's reflectors and our decoding into our store.
func viaLeanReflectors(config client.Config, pods bool) func() string {
	c, err := client.New(config)
	if err != nil {
		fatal(err)
	}
	s := store.New(store.Config{Endpoints: true, Pods: pods}, nil)
	var done sync.WaitGroup
	for _, k := range kinds(pods) {
		lw := listWatch(c, k, func(e client.Event) runtime.Object {
			o := &leanObject{Object: k.lean()}
			if err := o.Decode(append([]byte(nil), e.Object...), e.Encoding); err != nil {
				fatal(err)
			}
			m := o.Metadata()
			o.ns, o.name, o.version = string(m.Namespace), string(m.Name), string(m.ResourceVersion)
			if v := m.Annotation(metav1.InitialEventsAnnotationKey); v != nil {
				o.annotations = map[string]string{metav1.InitialEventsAnnotationKey: string(v)}
			}
			return o
		})
		done.Add(1)
		go cache.NewReflector(lw, &leanObject{}, intoStore{s, &done}, 0).RunWithContext(context.Background())
	}
	done.Wait()
	return func() string { return fmt.Sprintf("%d services", len(s.Services())) }
}
